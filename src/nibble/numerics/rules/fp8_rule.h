// A row of the rule list for FP8 with a scale for a block, a row or the whole matrix, from a formula as in amax_rule.h.
#pragma once

#include "nibble/numerics/rules/amax_rule.h"
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/float_scale.h"

namespace nibble {

// The formats of one scale for the matrix get it from the caller; the others have no second level.
template <typename Formula>
struct Fp8Rule {
  static TensorScale tensor_scale(const Format& format, float amax, SecondLevel) {
    if (!has_tensor_scale_only(format)) return {};
    float value = 0;
    uint32_t stored = 0;
    AmaxRule<Formula>::block_scales(format, &amax, 1, {}, &stored, &value);
    return {SecondLevel::kNone, value};
  }

  static void block_scales(const Format& format, const float* amax, uint64_t n, const TensorScale& tensor_scale,
                           uint32_t* stored, float* value) {
    if (!has_tensor_scale_only(format)) {
      return AmaxRule<Formula>::block_scales(format, amax, n, tensor_scale, stored, value);
    }
    for (uint64_t i = 0; i < n; ++i) {
      stored[i] = scale_encode(format.scale, tensor_scale.value);
      value[i] = scale_decode(format.scale, stored[i]);
    }
  }

  static BlockScale block_scale(const Format& format, const BlockStats& stats, const TensorScale& tensor_scale) {
    BlockScale scale;
    block_scales(format, &stats.amax, 1, tensor_scale, &scale.stored, &scale.value);
    return scale;
  }
};

}  // namespace nibble
