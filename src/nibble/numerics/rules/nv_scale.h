// The two scales of NVFP4 (FORMATS.md §2.2). A matrix (or a group of fused ones) of largest magnitude T has a
// second-level scale, held as the multiplier s2 or as the divisor g = 1/s2; a block of largest magnitude B has an E4M3
// scale s; value = q * (s * s2) or q * (s / g).
//
// Corner cases: T = 0 gives a second-level scale of 1, a zero block s = 1 (code 0x38). A block scale is never rounded
// to zero: blocks far below T get the smallest, 2^-9. A T so small or large that float32 cannot hold the second-level
// scale gets the nearest that it can.
#pragma once

#include <cstdint>

#include "nibble/numerics/codec/bf16.h"
#include "nibble/numerics/codec/e2m1.h"
#include "nibble/numerics/codec/e4m3.h"
#include "nibble/numerics/encoded.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {

inline constexpr uint32_t kNvZeroBlockScale = 0x38;  // 1.0
// The largest block scale times the largest element: T is normalised to it. Four-over-six leaves room for scales 1.5
// times as large.
inline constexpr float kNvRange = kE2m1Max * kE4m3Max;
inline constexpr float kNvFourSixRange = kE2m1Max * 256.0f;

// A float32 that is positive and finite.
NIBBLE_HD constexpr float nv_usable(float x) {
  return bits_float(usable_scale(float_bits(x), kFloatSign, kFloatInf - 1));
}

// s2 = T / range or g = range / T, each rounded once.
NIBBLE_HD constexpr float nv_second_level(float amax, float range, SecondLevel level) {
  if (amax == 0) return 1.0f;
  return nv_usable(level == SecondLevel::kDivide ? range / amax : amax / range);
}

// g rounded to bfloat16, as compressed-tensors evaluates it for bfloat16 weights.
NIBBLE_HD constexpr float nv_second_level_bf16(float amax) {
  if (amax == 0) return 1.0f;
  return scale_decode<ScaleType::kBF16>(scale_encode<ScaleType::kBF16>(kNvRange / amax));
}

// One level while the largest block scale, T/6, is an ordinary number of E4M3; two levels otherwise, since scales
// would lose bits, vanish or overflow.
NIBBLE_HD constexpr float nv_single_level(float amax, SecondLevel level) {
  const float largest = amax / kE2m1Max;
  return largest >= 0x1p-6f && largest <= kE4m3Max ? 1.0f : nv_second_level(amax, kNvRange, level);
}

// The second level as a pair, so that one expression without a branch serves both forms: x / over * times.
struct NvSecond {
  float over, times;
};
NIBBLE_HD constexpr NvSecond nv_second(SecondLevel level, float second) {
  return level == SecondLevel::kDivide ? NvSecond{1.0f, second} : NvSecond{second, 1.0f};
}

// E4M3 code of B / (6 s2), in the order of operations of ModelOpt, or of (B / 6) g.
NIBBLE_HD constexpr uint32_t nv_block_scale(float amax, NvSecond second) {
  const float ratio = amax / (kE2m1Max * second.over) * second.times;
  return choose(amax == 0, kNvZeroBlockScale, scale_encode<ScaleType::kE4M3>(ratio));
}

// Four-over-six: `factor` is 1 (the block's largest magnitude becomes 6) or 1.5 (it becomes 4).
NIBBLE_HD constexpr uint32_t nv_four_six_scale(float amax, NvSecond second, float factor) {
  const float base = amax / kE2m1Max / second.over * second.times;
  return choose(amax == 0, kNvZeroBlockScale, scale_encode<ScaleType::kE4M3>(base * factor));
}

}  // namespace nibble
