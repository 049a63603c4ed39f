// A rule that reads a block's largest magnitude alone, made from one formula:
//
//   struct Formula {
//     static constexpr int8_t kLow = 0, kHigh = 0;            // clamps of integer elements
//     Formula(const Format&, const TensorScale&);             // what is the same for all blocks
//     template <ScaleType kType> uint32_t stored(float amax) const;
//   };
//
// The loop over blocks has no branches that depend on the data, so that the compiler can vectorise it.
#pragma once

#include <cstdint>

#include "nibble/numerics/scale_codec.h"
#include "nibble/numerics/scale_rule.h"

namespace nibble {

template <typename Formula>
struct AmaxRule {
  template <ScaleType kType>
  static void fill(const Formula& formula, const float* amax, uint64_t n, uint32_t* __restrict stored,
                   float* __restrict value) {
    for (uint64_t i = 0; i < n; ++i) {
      const uint32_t bits = formula.template stored<kType>(amax[i]);
      stored[i] = bits;
      value[i] = scale_decode<kType>(bits);
    }
  }

  static void block_scales(const Format& format, const float* amax, uint64_t n, const TensorScale& tensor_scale,
                           uint32_t* stored, float* value) {
    const Formula formula(format, tensor_scale);
    switch (format.scale) {
      case ScaleType::kF32: return fill<ScaleType::kF32>(formula, amax, n, stored, value);
      case ScaleType::kBF16: return fill<ScaleType::kBF16>(formula, amax, n, stored, value);
      case ScaleType::kF16: return fill<ScaleType::kF16>(formula, amax, n, stored, value);
      case ScaleType::kE8M0: return fill<ScaleType::kE8M0>(formula, amax, n, stored, value);
      case ScaleType::kE4M3: return fill<ScaleType::kE4M3>(formula, amax, n, stored, value);
      case ScaleType::kNone: return;
    }
  }

  static BlockScale block_scale(const Format& format, const BlockStats& stats, const TensorScale& tensor_scale) {
    BlockScale scale{.clamp_low = Formula::kLow, .clamp_high = Formula::kHigh};
    block_scales(format, &stats.amax, 1, tensor_scale, &scale.stored, &scale.value);
    return scale;
  }
};

}  // namespace nibble
