// int4.amax7_5: amax / 7.5, codes -8..7: min-max of compressed-tensors, symmetric GPTQ. The largest magnitude becomes
// -8 or, on the positive side, is clamped to 7.
#include "nibble/numerics/rules/amax_rule.h"
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/float_scale.h"

namespace nibble {
namespace {

struct Formula {
  static constexpr int8_t kLow = -8, kHigh = 7;
  Formula(const Format&, const TensorScale&) {}

  template <ScaleType kType>
  uint32_t stored(float amax) const {
    return scale_encode<kType>(amax_scale(amax, kInt4FullRange));
  }
};

}  // namespace

extern const ScaleRule kInt4Amax75;
const ScaleRule kInt4Amax75 = {.name = "int4.amax7_5",
                               .summary = "amax / 7.5, codes -8..7",
                               .applies = is_symmetric_int4,
                               .block_scale = AmaxRule<Formula>::block_scale,
                               .block_scales = AmaxRule<Formula>::block_scales};

}  // namespace nibble
