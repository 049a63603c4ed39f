// A row of the rule list for NVFP4: rules differ in the second level alone.
#pragma once

#include "nibble/numerics/rules/amax_rule.h"
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/nv_scale.h"

namespace nibble {

// The form that the file needs, or the rule's own.
constexpr SecondLevel nv_level(SecondLevel wanted, SecondLevel own) {
  return wanted == SecondLevel::kNone ? own : wanted;
}

struct NvFormula {
  static constexpr int8_t kLow = 0, kHigh = 0;
  SecondLevel level;
  float second;

  NvFormula(const Format&, const TensorScale& scale) : level(scale.level), second(scale.value) {}

  template <ScaleType>
  uint32_t stored(float amax) const {
    return nv_block_scale(amax, level, second);
  }
};

constexpr ScaleRule nv_rule(std::string_view name, std::string_view summary,
                            TensorScale (*tensor_scale)(const Format&, float, SecondLevel)) {
  return {.name = name,
          .summary = summary,
          .applies = is_nvfp4,
          .tensor_scale = tensor_scale,
          .block_scale = AmaxRule<NvFormula>::block_scale,
          .block_scales = AmaxRule<NvFormula>::block_scales};
}

}  // namespace nibble
