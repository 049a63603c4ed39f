// A row of the rule list from one formula of mx_scale.h.
#pragma once

#include <cstdint>

#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/block_rule.h"
#include "nibble/numerics/rules/mx_scale.h"

namespace nibble {

template <uint32_t (*kCode)(float amax, MxElement element)>
struct MxFormula : AmaxFormula {
  MxElement element;

  MxFormula(const Format& format, const TensorScale&) : element(format.element == Element::kE2M1 ? kMxE2m1 : kMxE4m3) {}

  template <ScaleType>
  uint32_t stored(const BlockStats& stats) const {
    return kCode(stats.amax, element);
  }
};

template <uint32_t (*kCode)(float amax, MxElement element)>
constexpr ScaleRule mx_rule(std::string_view name, std::string_view summary) {
  return rule_from<MxFormula<kCode>>(name, summary, is_mx);
}

}  // namespace nibble
