// nv.single: no second level (it is 1) where the largest block scale, T / 6, is an ordinary E4M3 number; otherwise it
// would underflow, lose bits or overflow, and the second level is that of nv.two_level.
#include "nibble/numerics/rules/nv_rule.h"

namespace nibble {
namespace {

TensorScale tensor_scale(const Format&, float amax, SecondLevel level) {
  const SecondLevel form = nv_level(level, SecondLevel::kMultiply);
  return {form, nv_single_level(amax, form)};
}

}  // namespace

extern const ScaleRule kNvSingle;
const ScaleRule kNvSingle = nv_rule("nv.single", "second level 1 where the data allow it", tensor_scale);

}  // namespace nibble
