// nv.two_level: second level T / 2688 in float32, block scales B / (6 s2), as ModelOpt.
#include "nibble/numerics/rules/nv_rule.h"

namespace nibble {
namespace {

TensorScale tensor_scale(const Format&, float amax, SecondLevel level) {
  const SecondLevel form = nv_level(level, SecondLevel::kMultiply);
  return {form, nv_second_level(amax, kNvRange, form)};
}

}  // namespace

extern const ScaleRule kNvTwoLevel;
const ScaleRule kNvTwoLevel = nv_rule("nv.two_level", "float32 second level, amax / 2688", tensor_scale);

}  // namespace nibble
