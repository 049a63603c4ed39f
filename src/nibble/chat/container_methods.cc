// The methods of lists, tuples and dicts, without those that change them.
#include <array>

#include "nibble/chat/calls.h"
#include "nibble/chat/operators.h"
#include "nibble/chat/python_text.h"

namespace nibble::jinja {
namespace {

const List& self_list(const Call& call) { return **call.self.get<ListPtr>(); }
const DictPtr& self_dict(const Call& call) { return *call.self.get<DictPtr>(); }

Value list_index(Call& call) {
  const Values& items = self_list(call).items;
  const auto length = static_cast<int64_t>(items.size());
  const auto bound = [length](int64_t at) { return at < 0 ? std::max<int64_t>(at + length, 0) : at; };
  const int64_t end = std::min(bound(call.index(2, length)), length);
  for (int64_t i = bound(call.index(1, 0)); i < end; ++i) {
    if (equal(call.run, items[static_cast<size_t>(i)], call.args[0])) return integer(i);
  }
  fail("the value is not in the list");
}

Value list_count(Call& call) {
  int64_t found = 0;
  for (const Value& item : self_list(call).items) found += equal(call.run, item, call.args[0]) ? 1 : 0;
  return integer(found);
}

Value copy(Call& call) { return call.self; }

// keys(), values() and items(): they can be measured and iterated again and again, but not indexed.
enum class View { kKeys, kValues, kItems };
class DictView final : public Object {
 public:
  DictView(Run& run, DictPtr dict, View view) : dict_(std::move(dict)), view_(view) { hold(run.budget, Value{dict_}); }
  std::string_view type_name() const override {
    return view_ == View::kKeys ? "dict_keys" : view_ == View::kValues ? "dict_values" : "dict_items";
  }
  std::optional<int64_t> length(Run&) override { return static_cast<int64_t>(dict_->entries.size()); }
  IteratorPtr iterate(Run& run) override {
    auto next = [dict = dict_, view = view_, at = size_t{0}](Run& of, Value* out) mutable {
      of.budget.step();
      if (at == dict->entries.size()) return false;
      const auto& [key, value] = dict->entries[at++];
      *out = view == View::kKeys     ? key
             : view == View::kValues ? value
                                     : make_list(of.budget, {key, value}, List::Kind::kTuple);
      return true;
    };
    auto made = std::make_shared<Generated<decltype(next)>>(run.budget, std::move(next));
    made->hold(run.budget, Value{dict_});
    return made;
  }
  void repr(Run& run, TextBuilder& out) override {
    out.add(type_name());
    out.add("(");
    append_repr(run, out, make_list(run.budget, to_list(run, Value{shared_from_this()})));
    out.add(")");
  }

 private:
  DictPtr dict_;
  View view_;
};

template <View kView>
Value view_of(Call& call) {
  return Value{ObjectPtr(std::make_shared<DictView>(call.run, self_dict(call), kView))};
}

Value get(Call& call) {
  check_hashable(call.run, call.args[0]);
  const Value* found = find_key(call.run, *self_dict(call), call.args[0]);
  if (found != nullptr) return *found;
  return call.has(1) ? call.args[1] : Value{None{}};
}

constexpr std::array<Native, 3> kListMethods = {{
    {"index", "/ value start? stop?", list_index},
    {"count", "/ value", list_count},
    {"copy", "", copy},
}};

constexpr std::array<Native, 5> kDictMethods = {{
    {"get", "/ key default?", get},
    {"items", "", view_of<View::kItems>},
    {"keys", "", view_of<View::kKeys>},
    {"values", "", view_of<View::kValues>},
    {"copy", "", copy},
}};

}  // namespace

std::span<const Native> list_methods() { return kListMethods; }
std::span<const Native> dict_methods() { return kDictMethods; }

}  // namespace nibble::jinja
