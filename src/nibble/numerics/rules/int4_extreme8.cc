// int4.extreme8: the element of largest magnitude becomes exactly -8, so the scale is negative when it is positive; the
// grid of ggml's Q4_0. Codes -8..7.
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/block_rule.h"
#include "nibble/numerics/rules/float_scale.h"

namespace nibble {
namespace {

struct Formula : AmaxFormula {
  static constexpr BlockStatsNeeded kNeeds = BlockStatsNeeded::kExtreme;
  static constexpr int8_t kLow = -8, kHigh = 7;
  using AmaxFormula::AmaxFormula;

  template <ScaleType kType>
  uint32_t stored(const BlockStats& stats) const {
    return scale_encode<kType>(int4_extreme_scale(stats.extreme));
  }
};

}  // namespace

extern const ScaleRule kInt4Extreme8;
const ScaleRule kInt4Extreme8 = rule_from<Formula>(
    "int4.extreme8", "signed extreme / -8 (scales of both signs), as ggml's Q4_0", is_symmetric_int4);

}  // namespace nibble
