// Bit patterns of floating-point numbers, and the few operations on them that the codecs share. Arithmetic here is
// float32 add and multiply in the default rounding mode; nothing calls libm.
#pragma once

#include <cstdint>

#include "nibble/numerics/host_device.h"

namespace nibble {

NIBBLE_HD constexpr uint32_t float_bits(float x) { return __builtin_bit_cast(uint32_t, x); }
NIBBLE_HD constexpr float bits_float(uint32_t bits) { return __builtin_bit_cast(float, bits); }
NIBBLE_HD constexpr uint64_t double_bits(double x) { return __builtin_bit_cast(uint64_t, x); }
NIBBLE_HD constexpr double bits_double(uint64_t bits) { return __builtin_bit_cast(double, bits); }

inline constexpr uint32_t kFloatSign = 0x80000000u;
inline constexpr uint32_t kFloatInf = 0x7f800000u;
inline constexpr float kFloatMax = 0x1.fffffep127f;

NIBBLE_HD constexpr uint32_t magnitude_bits(float x) { return float_bits(x) & ~kFloatSign; }
NIBBLE_HD constexpr float magnitude(float x) { return bits_float(magnitude_bits(x)); }
NIBBLE_HD constexpr bool is_finite(float x) { return magnitude_bits(x) < kFloatInf; }

// `then` where `condition` holds, otherwise `other`. Unlike a branch this never keeps a loop from being vectorised,
// which counts where `other` is a floating-point result that must not be computed conditionally.
NIBBLE_HD constexpr uint32_t choose(bool condition, uint32_t then, uint32_t other) {
  const uint32_t mask = 0u - static_cast<uint32_t>(condition);
  return (then & mask) | (other & ~mask);
}
NIBBLE_HD constexpr float choose(bool condition, float then, float other) {
  return bits_float(choose(condition, float_bits(then), float_bits(other)));
}

// Drops the `drop` lowest bits of a non-negative pattern, rounding to nearest even. A carry into the exponent is what
// rounding up to the next power of two means, so the result is right for every finite float.
NIBBLE_HD constexpr uint32_t round_bits_to_even(uint32_t bits, uint32_t drop) {
  return (bits + (1u << (drop - 1)) - 1 + ((bits >> drop) & 1u)) >> drop;
}

// Integer nearest to x / 2^exponent, ties to even, for 0 <= x < 2^(exponent + 22): adding 1.5 * 2^(exponent + 23) makes
// the last mantissa bit worth 2^exponent. x may also be negative down to -2^(exponent + 22).
NIBBLE_HD constexpr int32_t nearest_multiple(float x, int exponent) {
  const uint32_t shifter = (static_cast<uint32_t>(exponent + 23 + 127) << 23) | 0x400000u;
  return static_cast<int32_t>(float_bits(x + bits_float(shifter)) - shifter);
}

// 2^k for -149 <= k <= 127.
NIBBLE_HD constexpr float exp2_int(int k) {
  return k >= -126 ? bits_float(static_cast<uint32_t>(k + 127) << 23) : bits_float(1u << (k + 149));
}

// float64 to float32 rounded to odd: inexact results get a last bit of 1, so that rounding once more to a type of at
// most 22 mantissa bits gives what rounding the float64 directly would. NaN stays NaN, overflow stops at kFloatMax.
NIBBLE_HD constexpr float double_to_float_odd(double x) {
  const uint64_t bits = double_bits(x);
  const uint64_t mag = bits & 0x7fffffffffffffffu;
  const uint32_t sign = static_cast<uint32_t>(bits >> 32) & kFloatSign;
  if (mag >= 0x7ff0000000000000u) {
    return bits_float(sign | kFloatInf | (mag > 0x7ff0000000000000u ? 0x400000u : 0u));
  }
  const int exponent = static_cast<int>(mag >> 52) - 1023;
  if (exponent > 127) return bits_float(sign | 0x7f7fffffu);
  const uint64_t mantissa = (mag & 0xfffffffffffffu) | 0x10000000000000u;
  const int drop = exponent >= -126 ? 29 : 29 + (-126 - exponent);
  if (drop > 53) return bits_float(sign | (mag != 0 ? 1u : 0u));
  const uint64_t kept = mantissa >> drop;
  const uint64_t lost = mantissa & ((uint64_t{1} << drop) - 1);
  // For normal results the implicit bit of `kept` carries into the exponent field.
  const uint32_t base = exponent >= -126 ? static_cast<uint32_t>(exponent + 126) << 23 : 0u;
  return bits_float(sign | (base + static_cast<uint32_t>(kept)) | (lost != 0 ? 1u : 0u));
}

// What a code that would be minus zero becomes (FORMATS.md §1.1).
enum class ZeroSign : uint8_t {
  kCanonical,           // always +0: what nibble writes
  kNegativeIfNegative,  // -0 for x < 0 that rounds to zero, +0 for -0.0: compressed-tensors, ModelOpt NVFP4
  kKeepSign,            // the sign bit is copied: hardware conversions and casts of tensor libraries
  kZeroIsNegative,      // as kNegativeIfNegative, and exact zeros are -0 as well: ModelOpt MXFP4
};

// The sign bit (0 or 1) of the code of x, whose magnitude rounded to zero or not.
NIBBLE_HD constexpr uint32_t code_sign(float x, bool rounded_to_zero, ZeroSign zero_sign) {
  const uint32_t sign = float_bits(x) >> 31;
  if (!rounded_to_zero) return sign;
  switch (zero_sign) {
    case ZeroSign::kCanonical: return 0;
    case ZeroSign::kNegativeIfNegative: return x < 0 ? 1 : 0;
    case ZeroSign::kKeepSign: return sign;
    case ZeroSign::kZeroIsNegative: return x <= 0 ? 1 : 0;
  }
  return 0;
}

}  // namespace nibble
