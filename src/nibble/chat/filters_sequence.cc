#include "nibble/chat/filters_sequence.h"

#include <fmt/format.h>

#include <algorithm>

#include "nibble/chat/operators.h"

namespace nibble::jinja {
namespace {

// Takes the first argument off.
Value take_first(Arguments& arguments, std::string_view what) {
  if (arguments.positional.empty()) fail(fmt::format("{} needs an argument", what));
  Value first = arguments.positional.front();
  arguments.positional.erase(arguments.positional.begin());
  return first;
}

Values held(const Arguments& arguments) {
  Values values = arguments.positional;
  for (const auto& [name, value] : arguments.named) values.push_back(value);
  return values;
}

Value map_attribute(Call& call) {
  Value path{None{}};
  Value otherwise{None{}};
  for (auto& [name, value] : call.arguments.named) {
    if (name == "attribute") {
      path = std::move(value);
    } else if (name == "default") {
      otherwise = std::move(value);
    } else {
      fail(fmt::format("Unexpected keyword argument '{}'", name));
    }
  }
  const IteratorPtr iterator = iterate(call.run, call.self);
  return generate(call.run, iterator, {path, otherwise}, [iterator, path, otherwise](Run& run, Value* out) {
    Value item;
    if (!iterator->next(run, &item)) return false;
    *out = look_up(run, item, path);
    if (out->is<Undefined>() && !otherwise.is<None>()) *out = otherwise;
    return true;
  });
}

// select and its relatives: keeps what the test says yes to, or no if `negated`.
Value filtered(Call& call, bool negated, bool by_attribute) {
  if (!truth(call.run, call.self)) return generate_nothing(call.run);
  Arguments arguments = std::move(call.arguments);
  const Value path = by_attribute ? take_first(arguments, "selecting by attribute") : Value{None{}};
  const Value test = arguments.positional.empty() ? Value{Missing{}} : take_first(arguments, "selecting");
  const IteratorPtr iterator = iterate(call.run, call.self);
  const auto next = [iterator, path, test, arguments, negated](Run& run, Value* out) {
    Value item;
    while (iterator->next(run, &item)) {
      const Value subject = look_up(run, item, path);
      const Value verdict = test.is<Missing>() ? subject : apply_named(run, tests(), test, subject, arguments);
      if (truth(run, verdict) == negated) continue;
      *out = std::move(item);
      return true;
    }
    return false;
  };
  return generate(call.run, iterator, held(arguments), next);
}

Value reversed_text(Run& run, const Value& text) {
  return slice_of(run, text, Value{None{}}, Value{None{}}, integer(-1));
}

// What Python's reversed() takes, as a list.
bool is_reversible(const Value& value) {
  if (value.is<Undefined>() || value.is<ListPtr>() || value.is<DictPtr>() || value.is<Range>() || value.is<TextPtr>())
    return true;
  return type_name(value).starts_with("dict_");
}

Value generate_reversed(Run& run, Values items) {
  const Values kept = items;
  return generate(run, nullptr, kept, [items = std::move(items)](Run& of, Value* out) mutable {
    of.budget.step();
    if (items.empty()) return false;
    *out = std::move(items.back());
    items.pop_back();
    return true;
  });
}

}  // namespace

Value filter_length(Call& call) {
  const auto length = try_length(call.run, call.self);
  if (!length) fail(fmt::format("object of type '{}' has no len()", type_name(call.self)));
  return integer(*length);
}

Value filter_list(Call& call) { return make_list(call.run.budget, to_list(call.run, call.self)); }

Value filter_first(Call& call) {
  Value first;
  if (iterate(call.run, call.self)->next(call.run, &first)) return first;
  return undefined("No first item, sequence was empty.");
}

Value filter_last(Call& call) {
  if (!is_reversible(call.self)) {
    fail(fmt::format("'{}' object is not reversible", type_name(call.self)));
  }
  if (call.self.is<DictPtr>() || call.self.is<ObjectPtr>()) {
    Values items = to_list(call.run, call.self);
    return items.empty() ? undefined("No last item, sequence was empty.") : items.back();
  }
  if (try_length(call.run, call.self) == 0) return undefined("No last item, sequence was empty.");
  return item_of(call.run, call.self, integer(-1));
}

Value filter_items(Call& call) {
  if (call.self.is<Undefined>()) return generate_nothing(call.run);
  const DictPtr* dict = call.self.get<DictPtr>();
  // As a generator, it complains where it is used and not where it is made.
  if (dict == nullptr) {
    return generate(call.run, nullptr, {},
                    [](Run&, Value*) -> bool { fail("Can only get item pairs from a mapping."); });
  }
  return generate(call.run, nullptr, {call.self}, [dict = *dict, at = size_t{0}](Run& run, Value* out) mutable {
    run.budget.step();
    if (at == dict->entries.size()) return false;
    const auto& [key, value] = dict->entries[at++];
    *out = make_list(run.budget, {key, value}, List::Kind::kTuple);
    return true;
  });
}

Value filter_reverse(Call& call) {
  if (call.self.text() != nullptr) return reversed_text(call.run, call.self);
  if (try_iterate(call.run, call.self) == nullptr) fail("argument must be iterable");
  Values items = to_list(call.run, call.self);
  if (is_reversible(call.self)) return generate_reversed(call.run, std::move(items));
  std::ranges::reverse(items);
  return make_list(call.run.budget, std::move(items));
}

Value filter_map(Call& call) {
  if (!truth(call.run, call.self)) return generate_nothing(call.run);
  const auto& named = call.arguments.named;
  const bool has_attribute = std::ranges::any_of(named, [](const auto& each) { return each.first == "attribute"; });
  if (call.arguments.positional.empty() && has_attribute) return map_attribute(call);
  Arguments arguments = std::move(call.arguments);
  const Value filter = take_first(arguments, "map");
  const IteratorPtr iterator = iterate(call.run, call.self);
  return generate(call.run, iterator, held(arguments), [iterator, filter, arguments](Run& run, Value* out) {
    Value item;
    if (!iterator->next(run, &item)) return false;
    *out = apply_named(run, filters(), filter, item, arguments);
    return true;
  });
}

Value filter_select(Call& call) { return filtered(call, false, false); }
Value filter_reject(Call& call) { return filtered(call, true, false); }
Value filter_selectattr(Call& call) { return filtered(call, false, true); }
Value filter_rejectattr(Call& call) { return filtered(call, true, true); }

Value filter_batch(Call& call) {
  const int64_t size = call.index(0, 1);
  const Value fill = call.has(1) ? call.args[1] : Value{None{}};
  const IteratorPtr iterator = iterate(call.run, call.self);
  auto next = [iterator, size, fill, waiting = Values()](Run& run, Value* out) mutable {
    Value item;
    while (iterator->next(run, &item)) {
      const bool is_full = static_cast<int64_t>(waiting.size()) == size;
      if (is_full) *out = make_list(run.budget, std::exchange(waiting, {}));
      waiting.push_back(std::move(item));
      if (is_full) return true;
    }
    if (waiting.empty()) return false;
    while (!fill.is<None>() && static_cast<int64_t>(waiting.size()) < size) {
      run.budget.step();
      waiting.push_back(fill);
    }
    *out = make_list(run.budget, std::exchange(waiting, {}));
    return true;
  };
  return generate(call.run, iterator, {fill}, std::move(next));
}

Value filter_slice(Call& call) {
  const Values items = to_list(call.run, call.self);
  const int64_t slices = call.index(0, 1);
  if (slices == 0) fail("division by zero");
  const auto count = static_cast<int64_t>(items.size());
  Values out;
  int64_t offset = 0;
  for (int64_t i = 0; i < slices; ++i) {
    call.run.budget.step();
    const int64_t begin = offset + i * (count / slices);
    if (i < count % slices) ++offset;
    const int64_t end = offset + (i + 1) * (count / slices);
    Values part(items.begin() + begin, items.begin() + end);
    if (call.has(1) && !call.args[1].is<None>() && i >= count % slices) part.push_back(call.args[1]);
    out.push_back(make_list(call.run.budget, std::move(part)));
  }
  std::ranges::reverse(out);
  return generate_reversed(call.run, std::move(out));
}

Value filter_default(Call& call) {
  const bool replaced = call.self.is<Undefined>() || (call.flag(1) && !truth(call.run, call.self));
  if (!replaced) return call.self;
  return call.has(0) ? call.args[0] : Value{make_text(call.run.budget, "")};
}

Value filter_attr(Call& call) {
  // As `value.name`, but never an item of a mapping.
  if (call.self.is<Undefined>()) fail_undefined(call.self);
  const DictPtr* dict = call.self.get<DictPtr>();
  const std::string& name = call.text(0)->bytes();
  if (dict != nullptr && find_native(dict_methods(), name) == nullptr) {
    return undefined(fmt::format("'dict object' has no attribute '{}'", name));
  }
  return attribute_of(call.run, call.self, name);
}

}  // namespace nibble::jinja
