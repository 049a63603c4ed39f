// E5M2 (FP8): bits s eeeee mm, bias 15, IEEE-like with infinities (0x7C) and NaNs (0x7D..0x7F), largest 57344 = 0x7B
// (FORMATS.md §1.3). Read only: no target stores weights in it.
#pragma once

#include <cstdint>

#include "nibble/numerics/codec/bits.h"
#include "nibble/numerics/codec/e4m3.h"

namespace nibble {

inline constexpr float kE5m2Max = 57344.0f;

NIBBLE_HD constexpr float e5m2_decode(uint8_t code) {
  const uint32_t magnitude = code & 0x7fu, sign = static_cast<uint32_t>(code & 0x80u) << 24;
  if (magnitude > 0x7cu) return bits_float(sign | 0x7fc00000u);
  if (magnitude == 0x7cu) return bits_float(sign | kFloatInf);
  if (magnitude >= 4) return bits_float(sign | ((magnitude << 21) + (112u << 23)));
  return bits_float(sign | float_bits(static_cast<float>(magnitude) * 0x1p-16f));
}

// Round to nearest even; the tie between 57344 and 65536 overflows. NaN gives 0x7E with the sign kept.
NIBBLE_HD constexpr uint8_t e5m2_encode(float x, Overflow overflow = Overflow::kSaturate) {
  const uint32_t a = magnitude_bits(x), sign = (float_bits(x) >> 24) & 0x80u;
  if (a > kFloatInf) return static_cast<uint8_t>(sign | 0x7eu);
  if (a < float_bits(0x1p-14f)) {
    return static_cast<uint8_t>(sign | static_cast<uint32_t>(nearest_multiple(bits_float(a), -16)));
  }
  const uint32_t limited = a < float_bits(65536.0f) ? a : float_bits(65536.0f);
  const uint32_t code = round_bits_to_even(limited, 21) - (112u << 2);
  return static_cast<uint8_t>(sign | (code == 0x7cu && overflow == Overflow::kSaturate ? 0x7bu : code));
}

}  // namespace nibble
