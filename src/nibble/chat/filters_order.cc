#include "nibble/chat/filters_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "nibble/base/strings.h"
#include "nibble/chat/operators.h"
#include "nibble/chat/sorting.h"
#include "nibble/chat/string_case.h"

namespace nibble::jinja {
namespace {

// What strings are compared by, unless the case counts.
Value fold(Run& run, const Value& value, bool case_sensitive) {
  if (case_sensitive || value.text() == nullptr) return value;
  Call call{run, value, {}, {}};
  return string_lower(call);
}

// Lists of "a,b.c" have several keys; anything else one.
Value sort_key(Run& run, const Value& item, const Value& path, bool case_sensitive) {
  Values keys;
  if (path.text() == nullptr) {
    keys.push_back(fold(run, look_up(run, item, path), case_sensitive));
  } else {
    for (const std::string_view part : split(path.text()->bytes(), ',')) {
      keys.push_back(fold(run, look_up(run, item, Value{make_text(run.budget, part)}), case_sensitive));
    }
  }
  return make_list(run.budget, std::move(keys));
}

using Keyed = std::pair<Value, Value>;  // key, item

// Stable, also backwards.
void sort_by_key(Run& run, std::vector<Keyed>& items, bool backwards) {
  if (backwards) std::ranges::reverse(items);
  merge_sort(items,
             [&run](const Keyed& a, const Keyed& b) { return compare(run, Comparison::kLess, a.first, b.first); });
  if (backwards) std::ranges::reverse(items);
}

Value items_of(Run& run, std::vector<Keyed> keyed) {
  Values items;
  for (Keyed& each : keyed) items.push_back(std::move(each.second));
  return make_list(run.budget, std::move(items));
}

Value extreme(Call& call, Comparison wanted) {
  const IteratorPtr iterator = iterate(call.run, call.self);
  Value best;
  if (!iterator->next(call.run, &best)) return undefined("No aggregated item, sequence was empty.");
  const auto key = [&call](const Value& item) {
    return fold(call.run, look_up(call.run, item, call.args[1]), call.flag(0));
  };
  Value best_key = key(best);
  for (Value each; iterator->next(call.run, &each);) {
    Value each_key = key(each);
    if (!compare(call.run, wanted, each_key, best_key)) continue;
    best = std::move(each);
    best_key = std::move(each_key);
  }
  return best;
}

}  // namespace

Value filter_sort(Call& call) {
  std::vector<Keyed> keyed;
  for (Value& item : to_list(call.run, call.self)) {
    Value key = sort_key(call.run, item, call.args[2], call.flag(1));
    keyed.emplace_back(std::move(key), std::move(item));
  }
  sort_by_key(call.run, keyed, call.flag(0));
  return items_of(call.run, std::move(keyed));
}

Value filter_dictsort(Call& call) {
  const DictPtr* dict = call.self.get<DictPtr>();
  if (dict == nullptr) {
    if (call.self.is<Undefined>()) fail_undefined(call.self);
    fail(fmt::format("dictsort needs a mapping, not '{}'", type_name(call.self)));
  }
  const std::string by = call.has(1) && call.args[1].text() != nullptr ? call.args[1].text()->bytes() : "key";
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : (*dict)->entries) {
    keyed.emplace_back(fold(call.run, by == "key" ? key : value, call.flag(0)),
                       make_list(call.run.budget, {key, value}, List::Kind::kTuple));
  }
  sort_by_key(call.run, keyed, call.flag(2));
  return items_of(call.run, std::move(keyed));
}

Value filter_unique(Call& call) {
  auto seen = std::make_shared<DictBuilder>(call.run);
  const bool case_sensitive = call.flag(0);
  const Value path = call.args[1];
  const IteratorPtr iterator = iterate(call.run, call.self);
  return generate(call.run, iterator, {path}, [iterator, case_sensitive, path, seen](Run& run, Value* out) {
    Value item;
    while (iterator->next(run, &item)) {
      const Value key = fold(run, look_up(run, item, path), case_sensitive);
      if (!seen->add(key)) continue;
      *out = std::move(item);
      return true;
    }
    return false;
  });
}

Value filter_groupby(Call& call) {
  const bool case_sensitive = call.flag(2);
  const auto grouper = [&call](const Value& item) {
    Value found = look_up(call.run, item, call.args[0]);
    const bool has_default = call.has(1) && !call.args[1].is<None>();
    return found.is<Undefined>() && has_default ? call.args[1] : found;
  };
  std::vector<Keyed> keyed;
  for (Value& item : to_list(call.run, call.self)) {
    Value key = fold(call.run, grouper(item), case_sensitive);
    keyed.emplace_back(std::move(key), std::move(item));
  }
  sort_by_key(call.run, keyed, false);
  Values groups;
  for (size_t begin = 0; begin < keyed.size();) {
    size_t end = begin + 1;
    while (end < keyed.size() && equal(call.run, keyed[begin].first, keyed[end].first)) ++end;
    Values members;
    for (size_t i = begin; i < end; ++i) members.push_back(keyed[i].second);
    Value name = grouper(members.front());
    Value list = make_list(call.run.budget, std::move(members));
    groups.push_back(make_list(call.run.budget, {std::move(name), std::move(list)}, List::Kind::kGroup));
    begin = end;
  }
  return make_list(call.run.budget, std::move(groups));
}

Value filter_min(Call& call) { return extreme(call, Comparison::kLess); }
Value filter_max(Call& call) { return extreme(call, Comparison::kGreater); }

Value filter_sum(Call& call) {
  Value total = call.has(1) ? call.args[1] : integer(0);
  if (total.text() != nullptr) fail("sum() can't sum strings [use ''.join(seq) instead]");
  const bool by_attribute = call.has(0) && !call.args[0].is<None>();
  const IteratorPtr iterator = iterate(call.run, call.self);
  for (Value each; iterator->next(call.run, &each);) {
    total = binary(call.run, Binary::kAdd, total, by_attribute ? look_up(call.run, each, call.args[0]) : each);
  }
  return total;
}

}  // namespace nibble::jinja
