// IEEE binary16: bits s eeeee mmmmmmmmmm, bias 15, round to nearest even (FORMATS.md §1.7). NaNs come out quiet with
// the upper payload bits, as the processor's own conversions give them.
#pragma once

#include <cstdint>

#include "nibble/numerics/codec/bits.h"

namespace nibble {

inline constexpr float kF16Max = 65504.0f;
inline constexpr float kF16MinSubnormal = 0x1p-24f;

NIBBLE_HD constexpr float f16_decode(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude > 0x7c00u) return bits_float(sign | 0x7fc00000u | (magnitude << 13));
  if (magnitude == 0x7c00u) return bits_float(sign | kFloatInf);
  if (magnitude >= 0x400u) return bits_float(sign | ((magnitude << 13) + (112u << 23)));
  return bits_float(sign | float_bits(static_cast<float>(magnitude) * kF16MinSubnormal));
}

// Overflow becomes infinity.
NIBBLE_HD constexpr uint16_t f16_encode(float x) {
  const uint32_t a = magnitude_bits(x), sign = (float_bits(x) >> 16) & 0x8000u;
  const uint32_t limited = a < float_bits(65536.0f) ? a : float_bits(65536.0f);
  const uint32_t subnormal = static_cast<uint32_t>(nearest_multiple(bits_float(limited), -24));
  const uint32_t normal = round_bits_to_even(limited, 13) - (112u << 10);
  const uint32_t nan = 0x7e00u | ((a >> 13) & 0x3ffu);
  const uint32_t finite = choose(a < float_bits(0x1p-14f), subnormal, normal);
  return static_cast<uint16_t>(sign | choose(a > kFloatInf, nan, finite));
}

NIBBLE_HD constexpr float f16_round(float x) { return f16_decode(f16_encode(x)); }

}  // namespace nibble
