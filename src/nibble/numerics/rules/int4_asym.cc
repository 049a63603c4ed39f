// int4.asym: 15 steps from the block's minimum to its maximum, both including 0, with the code of zero:
//   s = (max - min) / 15    z = clamp(RNE(-8 - min / s), -8, 7)    q = clamp(RNE(x / s + z), -8, 7)
// A zero block has scale 1 and codes 0 with zero point 0.
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/float_scale.h"
#include "nibble/numerics/scale_codec.h"
#include "nibble/numerics/scale_rule.h"

namespace nibble {
namespace {

BlockScale block_scale(const Format& format, const BlockStats& stats, const TensorScale&) {
  BlockScale scale{.clamp_low = -8, .clamp_high = 7};
  scale.stored = scale_encode(format.scale, int4_asymmetric_scale(stats.min, stats.max));
  scale.value = scale_decode(format.scale, scale.stored);
  scale.zero = int4_zero_code(stats.min, scale.value);
  return scale;
}

}  // namespace

extern const ScaleRule kInt4Asym;
const ScaleRule kInt4Asym = {.name = "int4.asym",
                             .summary = "(max - min) / 15 with a zero point",
                             .applies = is_asymmetric_int4,
                             .needs = BlockStatsNeeded::kMinMax,
                             .block_scale = block_scale};

}  // namespace nibble
