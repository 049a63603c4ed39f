// A row of the rule list for FP8 with a scale for a block, a row or the whole matrix, from a formula as in
// block_rule.h.
#pragma once

#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/block_rule.h"
#include "nibble/numerics/rules/float_scale.h"

namespace nibble {

// The formats of one scale for the matrix get it from the caller; the others have no second level.
template <typename Formula>
struct Fp8Rule {
  static TensorScale tensor_scale(const Format& format, float amax, SecondLevel) {
    if (!has_tensor_scale_only(format)) return {};
    return {SecondLevel::kNone, BlockRule<Formula>::block_scale(format, {.amax = amax}, {}).value};
  }

  static void block_scales(const Format& format, const BlockStatsArrays& stats, uint64_t count,
                           const TensorScale& tensor_scale, const BlockScaleArrays& out) {
    if (!has_tensor_scale_only(format)) {
      return BlockRule<Formula>::block_scales(format, stats, count, tensor_scale, out);
    }
    for (uint64_t i = 0; i < count; ++i) {
      out.stored[i] = scale_encode(format.scale, tensor_scale.value);
      out.value[i] = scale_decode(format.scale, out.stored[i]);
    }
  }

  static BlockScale block_scale(const Format& format, const BlockStats& stats, const TensorScale& tensor_scale) {
    BlockScale scale;
    block_scales(format, {.amax = &stats.amax}, 1, tensor_scale, {.stored = &scale.stored, .value = &scale.value});
    return scale;
  }
};

template <typename Formula>
constexpr ScaleRule fp8_rule(std::string_view name, std::string_view summary, bool (*applies)(const Format&)) {
  ScaleRule rule = rule_from<Formula>(name, summary, applies);
  rule.tensor_scale = Fp8Rule<Formula>::tensor_scale;
  rule.block_scale = Fp8Rule<Formula>::block_scale;
  rule.block_scales = Fp8Rule<Formula>::block_scales;
  return rule;
}

}  // namespace nibble
