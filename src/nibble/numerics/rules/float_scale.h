// Scales of the integer and FP8 formats (FORMATS.md §2.3, §2.4) before they are rounded to their stored type. A block
// of zeros has scale 1: finite, positive, and exact in every type.
#pragma once

#include <cstdint>

#include "nibble/numerics/codec/bits.h"
#include "nibble/numerics/codec/e4m3.h"
#include "nibble/numerics/codec/e8m0.h"
#include "nibble/numerics/codec/int4.h"

namespace nibble {

// The largest magnitude becomes `levels`.
NIBBLE_HD constexpr float amax_scale(float amax, float levels) { return choose(amax == 0, 1.0f, amax / levels); }

inline constexpr float kInt4FullRange = 7.5f;  // -7.5 -> -8, +7.5 -> 8, clamped to 7
inline constexpr float kInt4SymmetricRange = 7.0f;
inline constexpr float kInt8Range = 127.0f;

// FP8, rounded up to a power of two.
NIBBLE_HD constexpr float ue8m0_scale(float amax) {
  return choose(amax == 0, 1.0f, e8m0_decode(e8m0_round_up(amax / kE4m3Max)));
}

// Asymmetric INT4: 15 steps from min to max, which both include 0.
NIBBLE_HD constexpr float int4_asymmetric_scale(float min, float max) {
  return choose(min == max, 1.0f, (max - min) / 15.0f);
}

// The code of zero: RNE(-8 - min / scale) + 8 for the stored scale, 0..15.
NIBBLE_HD constexpr uint8_t int4_zero_code(float min, float scale) { return int4_encode(-8.0f - min / scale); }

// The signed extreme becomes -8, so the scale's sign is the opposite of its own.
NIBBLE_HD constexpr float int4_extreme_scale(float extreme) { return choose(extreme == 0, 1.0f, extreme / -8.0f); }

}  // namespace nibble
