// int4.asym: 15 steps from the block's minimum to its maximum, both including 0, with the code of zero:
//   s = (max - min) / 15    z = clamp(RNE(-8 - min / s), -8, 7)    q = clamp(RNE(x / s + z), -8, 7)
// A zero block has scale 1 and codes 0 with zero point 0.
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/block_rule.h"
#include "nibble/numerics/rules/float_scale.h"

namespace nibble {
namespace {

struct Formula : AmaxFormula {
  static constexpr BlockStatsNeeded kNeeds = BlockStatsNeeded::kMinMax;
  static constexpr int8_t kLow = -8, kHigh = 7;
  using AmaxFormula::AmaxFormula;

  template <ScaleType kType>
  uint32_t stored(const BlockStats& stats) const {
    return scale_encode<kType>(int4_asymmetric_scale(stats.min, stats.max));
  }

  uint8_t zero(const BlockStats& stats, float value) const { return int4_zero_code(stats.min, value); }
};

}  // namespace

extern const ScaleRule kInt4Asym;
const ScaleRule kInt4Asym = rule_from<Formula>("int4.asym", "(max - min) / 15 with a zero point", is_asymmetric_int4);

}  // namespace nibble
