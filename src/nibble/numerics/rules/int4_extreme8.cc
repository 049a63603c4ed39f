// int4.extreme8: the element of largest magnitude becomes exactly -8, so the scale is negative when it is positive; the
// grid of ggml's Q4_0. Codes -8..7.
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/float_scale.h"
#include "nibble/numerics/scale_codec.h"
#include "nibble/numerics/scale_rule.h"

namespace nibble {
namespace {

BlockScale block_scale(const Format& format, const BlockStats& stats, const TensorScale&) {
  BlockScale scale{.clamp_low = -8, .clamp_high = 7};
  scale.stored = scale_encode(format.scale, int4_extreme_scale(stats.extreme));
  scale.value = scale_decode(format.scale, scale.stored);
  return scale;
}

}  // namespace

extern const ScaleRule kInt4Extreme8;
const ScaleRule kInt4Extreme8 = {.name = "int4.extreme8",
                                 .summary = "signed extreme / -8 (scales of both signs), as ggml's Q4_0",
                                 .applies = is_symmetric_int4,
                                 .needs = BlockStatsNeeded::kExtreme,
                                 .block_scale = block_scale};

}  // namespace nibble
