// A row of the rule list for NVFP4: rules differ in the second level alone.
#pragma once

#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/block_rule.h"
#include "nibble/numerics/rules/nv_scale.h"

namespace nibble {

// The form that the file needs, or the rule's own.
constexpr SecondLevel nv_level(SecondLevel wanted, SecondLevel own) {
  return wanted == SecondLevel::kNone ? own : wanted;
}

struct NvFormula : AmaxFormula {
  NvSecond second;

  NvFormula(const Format&, const TensorScale& scale) : second(nv_second(scale.level, scale.value)) {}

  template <ScaleType>
  uint32_t stored(const BlockStats& stats) const {
    return nv_block_scale(stats.amax, second);
  }
};

template <typename Formula = NvFormula>
constexpr ScaleRule nv_rule(std::string_view name, std::string_view summary,
                            TensorScale (*tensor_scale)(const Format&, float, SecondLevel)) {
  ScaleRule rule = rule_from<Formula>(name, summary, is_nvfp4);
  rule.tensor_scale = tensor_scale;
  return rule;
}

}  // namespace nibble
