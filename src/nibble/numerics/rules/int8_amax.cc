// int8.amax: amax / 127, codes -127..127. Weights in INT8 are only read; this is the quantizer of INT8 activations.
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/block_rule.h"
#include "nibble/numerics/rules/float_scale.h"

namespace nibble {
namespace {

struct Formula : AmaxFormula {
  static constexpr int8_t kLow = -127, kHigh = 127;
  using AmaxFormula::AmaxFormula;

  template <ScaleType kType>
  uint32_t stored(const BlockStats& stats) const {
    return scale_encode<kType>(amax_scale(stats.amax, kInt8Range));
  }
};

bool applies(const Format& format) { return format.element == Element::kInt8 && has_float_scale(format); }

}  // namespace

extern const ScaleRule kInt8Amax;
const ScaleRule kInt8Amax = rule_from<Formula>("int8.amax", "amax / 127, codes -127..127", applies);

}  // namespace nibble
