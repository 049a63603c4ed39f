// int4.amax7: amax / 7, codes -7..7: the grid of quantization-aware training for INT4. Tools of that kind put a floor
// of 1e-5 under the scale; here small groups keep a small scale.
#include "nibble/numerics/rules/amax_rule.h"
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/float_scale.h"

namespace nibble {
namespace {

struct Formula {
  static constexpr int8_t kLow = -7, kHigh = 7;
  Formula(const Format&, const TensorScale&) {}

  template <ScaleType kType>
  uint32_t stored(float amax) const {
    return scale_encode<kType>(amax_scale(amax, kInt4SymmetricRange));
  }
};

}  // namespace

extern const ScaleRule kInt4Amax7;
const ScaleRule kInt4Amax7 = {.name = "int4.amax7",
                              .summary = "amax / 7, codes -7..7",
                              .applies = is_symmetric_int4,
                              .block_scale = AmaxRule<Formula>::block_scale,
                              .block_scales = AmaxRule<Formula>::block_scales};

}  // namespace nibble
