// fp8.ue8m0: 2^ceil(log2(amax / 448)), in a float type or as E8M0. A zero block has scale 1; in E8M0 code 0, as in MX.
#include "nibble/numerics/rules/fp8_rule.h"

namespace nibble {
namespace {

struct Formula : AmaxFormula {
  using AmaxFormula::AmaxFormula;

  template <ScaleType kType>
  uint32_t stored(const BlockStats& stats) const {
    if constexpr (kType == ScaleType::kE8M0) return e8m0_round_up(stats.amax / kE4m3Max);
    return scale_encode<kType>(ue8m0_scale(stats.amax));
  }
};

bool applies(const Format& format) {
  return format.element == Element::kE4M3 && !is_mx(format) &&
         (has_float_scale(format) || format.scale == ScaleType::kE8M0);
}

}  // namespace

extern const ScaleRule kFp8Ue8m0;
constinit const ScaleRule kFp8Ue8m0 = [] {
  ScaleRule rule = fp8_rule<Formula>("fp8.ue8m0", "amax / 448 rounded up to a power of two", applies);
  rule.powers_of_two = true;
  return rule;
}();

}  // namespace nibble
