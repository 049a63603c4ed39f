// int4.amax7_5: amax / 7.5, codes -8..7: min-max of compressed-tensors, symmetric GPTQ. The largest magnitude becomes
// -8 or, on the positive side, is clamped to 7.
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/block_rule.h"
#include "nibble/numerics/rules/float_scale.h"

namespace nibble {
namespace {

struct Formula : AmaxFormula {
  static constexpr int8_t kLow = -8, kHigh = 7;
  using AmaxFormula::AmaxFormula;

  template <ScaleType kType>
  uint32_t stored(const BlockStats& stats) const {
    return scale_encode<kType>(amax_scale(stats.amax, kInt4FullRange));
  }
};

}  // namespace

extern const ScaleRule kInt4Amax75;
const ScaleRule kInt4Amax75 = rule_from<Formula>("int4.amax7_5", "amax / 7.5, codes -8..7", is_symmetric_int4);

}  // namespace nibble
