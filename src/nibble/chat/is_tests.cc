// What stands behind `is`: one row each.
#include <fmt/format.h>

#include <array>

#include "nibble/chat/calls.h"
#include "nibble/chat/operators.h"
#include "nibble/chat/python_text.h"
#include "nibble/chat/string_case.h"

namespace nibble::jinja {
namespace {

template <typename T>
Value is_a(Call& call) {
  return boolean(call.self.is<T>());
}

Value is_defined(Call& call) { return boolean(!call.self.is<Undefined>()); }

template <bool kYes>
Value is_bool(Call& call) {
  const bool* value = call.self.get<bool>();
  return boolean(value != nullptr && *value == kYes);
}

Value is_number(Call& call) {
  return boolean(call.self.is<bool>() || call.self.is<Integer>() || call.self.is<double>());
}

Value is_sequence(Call& call) {
  const bool by_index =
      call.self.is<TextPtr>() || call.self.is<ListPtr>() || call.self.is<DictPtr>() || call.self.is<Range>();
  // Whatever is asked of an undefined value is there, but for names of Python's own.
  return boolean(by_index || call.self.is<Undefined>());
}

Value is_iterable(Call& call) { return boolean(try_iterate(call.run, call.self) != nullptr); }

Value is_callable(Call& call) {
  const ObjectPtr* object = call.self.get<ObjectPtr>();
  return boolean(call.self.is<Undefined>() || (object != nullptr && (*object)->is_callable()));
}

Value remainder_is(Call& call, const Value& divisor, int64_t wanted) {
  return boolean(equal(call.run, binary(call.run, Binary::kModulo, call.self, divisor), integer(wanted)));
}

Value is_odd(Call& call) { return remainder_is(call, integer(2), 1); }
Value is_even(Call& call) { return remainder_is(call, integer(2), 0); }
Value is_divisible(Call& call) { return remainder_is(call, call.args[0], 0); }

template <Value (*kMethod)(Call&)>
Value is_in_case(Call& call) {
  const Value text{to_text(call.run, call.self)};
  Call inner{call.run, text, {}, {}};
  return kMethod(inner);
}

template <Comparison kComparison>
Value compares(Call& call) {
  return boolean(compare(call.run, kComparison, call.self, call.args[0]));
}

// The same object: by value for what Python has once, by place for containers.
Value is_same(Call& call) {
  const Value& a = call.self;
  const Value& b = call.args[0];
  if (a.v.index() != b.v.index()) return boolean(false);
  if (const TextPtr* text = a.get<TextPtr>()) return boolean(*text == *b.get<TextPtr>());
  if (const ListPtr* list = a.get<ListPtr>()) return boolean(*list == *b.get<ListPtr>());
  if (const DictPtr* dict = a.get<DictPtr>()) return boolean(*dict == *b.get<DictPtr>());
  if (a.is<double>() || a.is<Undefined>() || a.is<Range>()) return boolean(false);
  return boolean(equal(call.run, a, b));
}

Value is_escaped(Call& call) { return boolean(call.self.text() != nullptr && call.self.text()->is_markup()); }

template <std::span<const Native> (*kTable)()>
Value is_known(Call& call) {
  check_hashable(call.run, call.self);
  return boolean(call.self.text() != nullptr && find_native(kTable(), call.self.text()->bytes()) != nullptr);
}

}  // namespace

std::span<const Native> tests() {
  static constexpr std::array<Native, 39> kTests = {{
      {"!=", "/ other", compares<Comparison::kNotEqual>},
      {"<", "/ other", compares<Comparison::kLess>},
      {"<=", "/ other", compares<Comparison::kLessEqual>},
      {"==", "/ other", compares<Comparison::kEqual>},
      {">", "/ other", compares<Comparison::kGreater>},
      {">=", "/ other", compares<Comparison::kGreaterEqual>},
      {"boolean", "", is_a<bool>},
      {"callable", "", is_callable},
      {"defined", "", is_defined},
      {"divisibleby", "num", is_divisible},
      {"eq", "/ other", compares<Comparison::kEqual>},
      {"equalto", "/ other", compares<Comparison::kEqual>},
      {"escaped", "", is_escaped},
      {"even", "", is_even},
      {"false", "", is_bool<false>},
      {"filter", "", is_known<filters>},
      {"float", "", is_a<double>},
      {"ge", "/ other", compares<Comparison::kGreaterEqual>},
      {"greaterthan", "/ other", compares<Comparison::kGreater>},
      {"gt", "/ other", compares<Comparison::kGreater>},
      {"in", "seq", compares<Comparison::kIn>},
      {"integer", "", is_a<Integer>},
      {"iterable", "", is_iterable},
      {"le", "/ other", compares<Comparison::kLessEqual>},
      {"lessthan", "/ other", compares<Comparison::kLess>},
      {"lower", "", is_in_case<string_islower>},
      {"lt", "/ other", compares<Comparison::kLess>},
      {"mapping", "", is_a<DictPtr>},
      {"ne", "/ other", compares<Comparison::kNotEqual>},
      {"none", "", is_a<None>},
      {"number", "", is_number},
      {"odd", "", is_odd},
      {"sameas", "other", is_same},
      {"sequence", "", is_sequence},
      {"string", "", is_a<TextPtr>},
      {"test", "", is_known<tests>},
      {"true", "", is_bool<true>},
      {"undefined", "", is_a<Undefined>},
      {"upper", "", is_in_case<string_isupper>},
  }};
  return kTests;
}

}  // namespace nibble::jinja
