// nv.ct: the second level is a divisor that bfloat16 can hold, g = bf16(2688 / T), as compressed-tensors computes it.
// The block scales are float32 arithmetic of ours: g * (B / 6). Where a file needs a multiplier, it is 1 / g.
#include "nibble/numerics/rules/nv_rule.h"

namespace nibble {
namespace {

TensorScale tensor_scale(const Format&, float amax, SecondLevel level) {
  const float divisor = nv_second_level_bf16(amax);
  const SecondLevel form = nv_level(level, SecondLevel::kDivide);
  return {form, form == SecondLevel::kDivide ? divisor : 1.0f / divisor};
}

}  // namespace

extern const ScaleRule kNvCt;
const ScaleRule kNvCt = nv_rule("nv.ct", "bfloat16 global scale, as in compressed-tensors", tensor_scale);

}  // namespace nibble
