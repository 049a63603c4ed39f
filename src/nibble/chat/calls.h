// Built-in functions, methods, filters and tests: rows of tables, called with Python's rules for arguments.
#pragma once

#include <span>
#include <string_view>

#include "nibble/chat/run.h"

namespace nibble::jinja {

struct Call {
  Run& run;
  const Value& self;    // what a method, a filter or a test is applied to
  Values args;          // one for each parameter; Missing if it was not given
  Arguments arguments;  // as given, where the row takes any ("*")

  bool has(size_t i) const { return !args[i].is<Missing>(); }
  // Typed access; fails in Python's words. The second ones: if the argument is given and not None.
  const TextPtr& text(size_t i) const;
  const Text* text_or_none(size_t i) const;
  int64_t index(size_t i, int64_t otherwise) const;
  bool flag(size_t i, bool otherwise = false) const;
};

struct Native {
  std::string_view name;
  // Names in order; "?" behind one: may be left out. "/" in front: by position only. "*": any, unbound.
  std::string_view parameters;
  Value (*function)(Call& call);
};

Value invoke(Run& run, const Native& native, const Value& self, Arguments arguments);
const Native* find_native(std::span<const Native> table, std::string_view name);

// A method of a value, not yet called.
Value bind_method(Run& run, const Value& self, const Native& native);

std::span<const Native> string_methods();
std::span<const Native> list_methods();
std::span<const Native> dict_methods();
std::span<const Native> filters();
std::span<const Native> tests();
std::span<const Native> globals();

// `attribute` as filters take it: "a.b.0", an integer, or None for the value itself.
Value look_up(Run& run, const Value& item, const Value& path);
// The filter or test of this name, applied as `map` and `select` do it. Fails for one that is not known.
Value apply_named(Run& run, std::span<const Native> table, const Value& name, const Value& item, Arguments arguments);

// A generator over a function that gives the next value, false at the end.
template <typename Next>
class Generated final : public Iterator {
 public:
  Generated(Budget& budget, Next next) : next_(std::move(next)), lease_(&budget) { lease_.grow(sizeof(Next) + 128); }
  bool next(Run& run, Value* out) override { return next_(run, out); }

 private:
  Next next_;
  Lease lease_;
};
// `held`: the values that the function keeps, `source` among them.
template <typename Next>
Value generate(Run& run, const IteratorPtr& source, const Values& held, Next next) {
  auto made = std::make_shared<Generated<Next>>(run.budget, std::move(next));
  if (source != nullptr) made->hold(run.budget, Value{ObjectPtr(source)});
  for (const Value& value : held) made->hold(run.budget, value);
  return Value{ObjectPtr(std::move(made))};
}
inline Value generate_nothing(Run& run) {
  return generate(run, nullptr, {}, [](Run&, Value*) { return false; });
}

}  // namespace nibble::jinja
