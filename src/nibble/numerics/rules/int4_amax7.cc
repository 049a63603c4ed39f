// int4.amax7: amax / 7, codes -7..7: the grid of quantization-aware training for INT4. Tools of that kind put a floor
// of 1e-5 under the scale; here small groups keep a small scale.
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/block_rule.h"
#include "nibble/numerics/rules/float_scale.h"

namespace nibble {
namespace {

struct Formula : AmaxFormula {
  static constexpr int8_t kLow = -7, kHigh = 7;
  using AmaxFormula::AmaxFormula;

  template <ScaleType kType>
  uint32_t stored(const BlockStats& stats) const {
    return scale_encode<kType>(amax_scale(stats.amax, kInt4SymmetricRange));
  }
};

}  // namespace

extern const ScaleRule kInt4Amax7;
const ScaleRule kInt4Amax7 = rule_from<Formula>("int4.amax7", "amax / 7, codes -7..7", is_symmetric_int4);

}  // namespace nibble
