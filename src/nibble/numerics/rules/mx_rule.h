// A row of the rule list from one formula of mx_scale.h.
#pragma once

#include <cstdint>

#include "nibble/numerics/rules/amax_rule.h"
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/mx_scale.h"

namespace nibble {

template <uint32_t (*kCode)(float amax, MxElement element)>
struct MxFormula {
  static constexpr int8_t kLow = 0, kHigh = 0;
  MxElement element;

  MxFormula(const Format& format, const TensorScale&) : element(format.element == Element::kE2M1 ? kMxE2m1 : kMxE4m3) {}

  template <ScaleType>
  uint32_t stored(float amax) const {
    return kCode(amax, element);
  }
};

template <uint32_t (*kCode)(float amax, MxElement element)>
constexpr ScaleRule mx_rule(std::string_view name, std::string_view summary) {
  using Rule = AmaxRule<MxFormula<kCode>>;
  return {.name = name,
          .summary = summary,
          .applies = is_mx,
          .block_scale = Rule::block_scale,
          .block_scales = Rule::block_scales};
}

}  // namespace nibble
