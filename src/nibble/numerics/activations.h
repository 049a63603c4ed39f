// Dynamic quantization of activations: each token's columns in groups of N, a float32 scale for each group, FP8 or INT8
// codes (FORMATS.md §2.4). A group's result depends on that group alone: other tokens, padding and the batch cannot
// change it.
//
//   s = max(amax, floor) / 448 (INT8: 127), for ue8m0 rounded up to a power of two;  code = RNE(x / s), sign kept
//
// A group of zeros has codes 0 and a finite positive scale. A group that holds a NaN or an infinity decodes to NaN: its
// scale is NaN, its codes are 0x7F.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nibble/numerics/codec/e4m3.h"
#include "nibble/numerics/encoded.h"
#include "nibble/numerics/rules/float_scale.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {

struct ActivationQuantization {
  Element element = Element::kE4M3;  // or kInt8
  uint64_t group = 128;              // 0: one group for each token
  bool ue8m0 = false;                // FP8 only
  float floor = 1e-4f;               // the DeepSeek reference's; some ports have none: 0
};

NIBBLE_HD constexpr float activation_scale(float amax, float floor, float levels, bool ue8m0) {
  if (!is_finite(amax)) return bits_float(0x7fc00000u);
  const float scale = amax_scale(amax > floor ? amax : floor, levels);
  if (ue8m0) return e8m0_decode(e8m0_round_up(scale));
  return bits_float(usable_scale(float_bits(scale), kFloatSign, kFloatInf - 1));
}

// x (T, K) of any dense element; codes (T, K) bytes; scales (T, ceil(K / group)).
void quantize_activations_1xn(const DenseView& x, const ActivationQuantization& how, std::byte* codes, float* scales);

}  // namespace nibble
