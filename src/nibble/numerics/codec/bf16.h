// bfloat16: the upper half of a float32, round to nearest even (FORMATS.md §1.7).
#pragma once

#include <cstdint>

#include "nibble/numerics/codec/bits.h"

namespace nibble {

NIBBLE_HD constexpr float bf16_decode(uint16_t bits) { return bits_float(static_cast<uint32_t>(bits) << 16); }

// NaN stays NaN (made quiet), overflow becomes infinity.
NIBBLE_HD constexpr uint16_t bf16_encode(float x) {
  const uint32_t bits = float_bits(x);
  if ((bits & ~kFloatSign) > kFloatInf) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>(round_bits_to_even(bits, 16));
}

// x rounded to bfloat16 and back: one operation "in bfloat16" of a tensor library is a float32 one followed by this.
NIBBLE_HD constexpr float bf16_round(float x) { return bf16_decode(bf16_encode(x)); }

inline constexpr float kBf16Max = 0x1.fep127f;
inline constexpr float kBf16MinSubnormal = 0x1p-133f;

}  // namespace nibble
