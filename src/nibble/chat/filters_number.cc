#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "nibble/chat/filters_order.h"
#include "nibble/chat/operators.h"
#include "nibble/chat/python_text.h"

namespace nibble::jinja {
namespace {

constexpr double kLargest = 1.7e38;  // what an Integer holds

// int(number); fails for what is none.
Value whole_part(double number) {
  if (std::isnan(number)) fail("cannot convert float NaN to integer");
  if (std::fabs(number) > kLargest) fail("the number is too large for an integer");
  return Value{static_cast<Integer>(number)};
}

std::optional<double> as_float(const Value& value) {
  Integer storage = 0;
  if (const double* number = value.get<double>()) return *number;
  if (const Integer* number = as_integer(value, &storage)) return static_cast<double>(*number);
  if (const Text* text = value.text()) return read_float(text->bytes());
  return std::nullopt;
}

// Of a float, half to even on its exact decimals.
double round_float(double number, int64_t digits) {
  if (!std::isfinite(number) || digits > 330) return number;
  if (digits < -310) return std::copysign(0.0, number);
  if (digits >= 0) {
    char buffer[700];
    std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(digits), number);
    return std::strtod(buffer, nullptr);
  }
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  const double rest = std::fmod(number, unit);
  const double down = number - rest;
  const double away = std::fabs(rest) * 2;
  const bool up = away > unit || (away == unit && std::fmod(down / unit, 2) != 0);
  return up ? down + std::copysign(unit, number) : down;
}

Integer round_integer(Integer number, int64_t digits) {
  if (digits >= 0) return number;
  Integer unit = 1;
  for (int64_t i = digits; i < 0; ++i) {
    if (__builtin_mul_overflow(unit, Integer{10}, &unit)) return 0;
  }
  const Integer rest = number % unit;
  const Integer down = number - rest;
  const Integer away = (rest < 0 ? -rest : rest) * 2;
  const bool up = away > unit || (away == unit && (down / unit) % 2 != 0);
  return up ? down + (number < 0 ? -unit : unit) : down;
}

}  // namespace

Value filter_abs(Call& call) {
  if (const double* number = call.self.get<double>()) return Value{std::fabs(*number)};
  const Value number = plus(call.self);
  return std::get<Integer>(number.v) < 0 ? negate(number) : number;
}

Value filter_int(Call& call) {
  Value otherwise = call.has(0) ? call.args[0] : integer(0);
  Integer storage = 0;
  if (const Integer* number = as_integer(call.self, &storage)) return Value{*number};
  if (const double* number = call.self.get<double>()) {
    if (std::isnan(*number)) return otherwise;
    return whole_part(*number);
  }
  if (call.self.is<Undefined>()) fail_undefined(call.self);
  const Text* text = call.self.text();
  if (text == nullptr) return otherwise;
  const int64_t base = call.index(1, 10);
  bool too_large = false;
  if (base == 0 || (base >= 2 && base <= 36)) {
    call.run.budget.step(text->size() / 16);
    const auto number = read_integer(text->bytes(), static_cast<int>(base), &too_large);
    if (too_large && number) fail("the number is too large for an integer");
    if (number) return Value{*number};
  }
  const auto number = read_float(text->bytes());
  if (!number || !std::isfinite(*number)) return otherwise;
  return whole_part(*number);
}

Value filter_float(Call& call) {
  if (call.self.is<Undefined>()) fail_undefined(call.self);
  const auto number = as_float(call.self);
  if (number) return Value{*number};
  return call.has(0) ? call.args[0] : Value{0.0};
}

Value filter_round(Call& call) {
  const std::string method = call.has(1) && call.args[1].text() != nullptr ? call.args[1].text()->bytes() : "common";
  const int64_t digits = call.index(0, 0);
  Integer storage = 0;
  const Integer* whole = as_integer(call.self, &storage);
  const double* number = call.self.get<double>();
  if (call.self.is<Undefined>()) fail_undefined(call.self);
  if (whole == nullptr && number == nullptr) fail(fmt::format("type {} cannot be rounded", type_name(call.self)));
  if (method == "common") {
    return whole != nullptr ? Value{round_integer(*whole, digits)} : Value{round_float(*number, digits)};
  }
  if (method != "ceil" && method != "floor") fail("method must be common, ceil or floor");
  const Value scale = binary(call.run, Binary::kPower, integer(10), integer(digits));
  const Value scaled = binary(call.run, Binary::kMultiply, call.self, scale);
  Value rounded = scaled;
  if (const double* floating = scaled.get<double>()) {
    rounded = whole_part(method == "ceil" ? std::ceil(*floating) : std::floor(*floating));
  }
  return binary(call.run, Binary::kDivide, rounded, scale);
}

}  // namespace nibble::jinja
