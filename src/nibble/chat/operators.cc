#include "nibble/chat/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nibble/base/error.h"
#include "nibble/chat/string_tools.h"

namespace nibble::jinja {
namespace {

constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void refuse_operands(Binary operation, const Value& left, const Value& right) {
  if (left.is<Undefined>()) fail_undefined(left);
  if (right.is<Undefined>()) fail_undefined(right);
  fail(fmt::format("unsupported operand types for {}: '{}' and '{}'", kSymbols[static_cast<int>(operation)],
                   type_name(left), type_name(right)));
}

[[noreturn]] void refuse_overflow() {
  throw Error("a whole number of the template does not fit 128 bits").way_out("check the numbers in the conversation");
}

Integer floor_divide(Integer a, Integer b) {
  if (b == -1) {
    Integer negated = 0;
    if (__builtin_sub_overflow(Integer{0}, a, &negated)) refuse_overflow();
    return negated;
  }
  const Integer quotient = a / b;
  return (a % b != 0) && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

Integer floor_modulo(Integer a, Integer b) {
  if (b == -1) return 0;
  const Integer rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

Value integer_power(Integer base, Integer exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0.0 cannot be raised to a negative power");
    return Value{std::pow(static_cast<double>(base), static_cast<double>(exponent))};
  }
  Integer result = 1;
  while (exponent > 0) {
    if (exponent % 2 != 0 && __builtin_mul_overflow(result, base, &result)) refuse_overflow();
    exponent /= 2;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) refuse_overflow();
  }
  return Value{result};
}

Value integer_binary(Binary operation, Integer a, Integer b) {
  Integer out = 0;
  bool overflow = false;
  switch (operation) {
    case Binary::kAdd: overflow = __builtin_add_overflow(a, b, &out); break;
    case Binary::kSubtract: overflow = __builtin_sub_overflow(a, b, &out); break;
    case Binary::kMultiply: overflow = __builtin_mul_overflow(a, b, &out); break;
    case Binary::kPower: return integer_power(a, b);
    default:
      if (b == 0) fail("division by zero");
      if (operation == Binary::kDivide) return Value{static_cast<double>(a) / static_cast<double>(b)};
      out = operation == Binary::kFloorDivide ? floor_divide(a, b) : floor_modulo(a, b);
  }
  if (overflow) refuse_overflow();
  return Value{out};
}

double float_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

double float_floor_divide(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

double float_power(double a, double b) {
  if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) {
    fail("a negative number to a fractional power is not a real number");
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) fail("Numerical result out of range");
  return result;
}

Value float_binary(Binary operation, double a, double b) {
  switch (operation) {
    case Binary::kAdd: return Value{a + b};
    case Binary::kSubtract: return Value{a - b};
    case Binary::kMultiply: return Value{a * b};
    case Binary::kPower: return Value{float_power(a, b)};
    default: break;
  }
  if (b == 0) fail("float division by zero");
  if (operation == Binary::kDivide) return Value{a / b};
  return Value{operation == Binary::kModulo ? float_modulo(a, b) : float_floor_divide(a, b)};
}

bool as_double(const Value& value, double* out) {
  Integer storage = 0;
  if (const double* number = value.get<double>()) {
    *out = *number;
  } else if (const Integer* whole = as_integer(value, &storage)) {
    *out = static_cast<double>(*whole);
  } else {
    return false;
  }
  return true;
}

Value repeat_list(Run& run, const List& list, const Value& count) {
  const int64_t times = std::max<int64_t>(index_argument(count), 0);
  const Integer total = Integer{times} * static_cast<Integer>(list.items.size());
  run.budget.check_size(static_cast<uint64_t>(std::min<Integer>(total * sizeof(Value), INT64_MAX)));
  run.budget.step(static_cast<uint64_t>(total));
  Values items;
  items.reserve(static_cast<size_t>(total));
  for (Integer i = 0; i < total; ++i) items.push_back(list.items[static_cast<size_t>(i) % list.items.size()]);
  return make_list(run.budget, std::move(items), list.is_tuple() ? List::Kind::kTuple : List::Kind::kList);
}

// Concatenation and repetition; Missing if the operands are no sequences.
Value sequence_binary(Run& run, Binary operation, const Value& left, const Value& right) {
  Integer storage = 0;
  const TextPtr* text = left.get<TextPtr>();
  const ListPtr* list = left.get<ListPtr>();
  if (operation == Binary::kMultiply) {
    if (text != nullptr && as_integer(right, &storage) != nullptr) return Value{repeat(run, *text, right)};
    if (list != nullptr && as_integer(right, &storage) != nullptr) return repeat_list(run, **list, right);
    if (as_integer(left, &storage) != nullptr && (right.is<TextPtr>() || right.is<ListPtr>())) {
      return sequence_binary(run, operation, right, left);
    }
  } else if (operation == Binary::kAdd) {
    const TextPtr* other_text = right.get<TextPtr>();
    const ListPtr* other_list = right.get<ListPtr>();
    if (text != nullptr && other_text != nullptr) return Value{concat(run, *text, *other_text)};
    if (list != nullptr && other_list != nullptr && (*list)->is_tuple() == (*other_list)->is_tuple()) {
      Values items = (*list)->items;
      items.insert(items.end(), (*other_list)->items.begin(), (*other_list)->items.end());
      run.budget.step(items.size() / 4);
      return make_list(run.budget, std::move(items), (*list)->is_tuple() ? List::Kind::kTuple : List::Kind::kList);
    }
  } else if (operation == Binary::kModulo && text != nullptr) {
    return Value{format_percent(run, *text, right)};
  }
  return Value{Missing{}};
}

}  // namespace

const Integer* as_integer(const Value& value, Integer* storage) {
  if (const bool* yes = value.get<bool>()) {
    *storage = *yes ? 1 : 0;
    return storage;
  }
  return value.get<Integer>();
}

int64_t index_argument(const Value& value) {
  Integer storage = 0;
  const Integer* number = as_integer(value, &storage);
  if (number == nullptr) {
    if (value.is<Undefined>()) fail_undefined(value);
    fail(fmt::format("'{}' object cannot be interpreted as an integer", type_name(value)));
  }
  return static_cast<int64_t>(std::clamp<Integer>(*number, INT64_MIN, INT64_MAX));
}

bool truth(Run& run, const Value& value) {
  if (const bool* yes = value.get<bool>()) return *yes;
  if (value.is<Undefined>() || value.is<None>() || value.is<Missing>()) return false;
  if (const Integer* number = value.get<Integer>()) return *number != 0;
  if (const double* number = value.get<double>()) return *number != 0;
  const auto length = try_length(run, value);
  return !length || *length != 0;
}

Value binary(Run& run, Binary operation, const Value& left, const Value& right) {
  Integer left_storage = 0;
  Integer right_storage = 0;
  const Integer* a = as_integer(left, &left_storage);
  const Integer* b = as_integer(right, &right_storage);
  if (a != nullptr && b != nullptr) return integer_binary(operation, *a, *b);
  double x = 0;
  double y = 0;
  if (as_double(left, &x) && as_double(right, &y)) return float_binary(operation, x, y);
  Value made = sequence_binary(run, operation, left, right);
  if (made.is<Missing>()) refuse_operands(operation, left, right);
  return made;
}

Value negate(const Value& value) {
  if (const double* number = value.get<double>()) return Value{-*number};
  return integer_binary(Binary::kSubtract, 0, std::get<Integer>(plus(value).v));
}

Value plus(const Value& value) {
  if (value.is<double>()) return value;
  Integer storage = 0;
  if (const Integer* number = as_integer(value, &storage)) return Value{*number};
  if (value.is<Undefined>()) fail_undefined(value);
  fail(fmt::format("a '{}' has no sign", type_name(value)));
}

}  // namespace nibble::jinja
