// mx.even: amax rounded to the element's mantissa first, as compressed-tensors does for MXFP4.
#include "nibble/numerics/rules/mx_rule.h"

namespace nibble {
namespace {

NIBBLE_HD uint32_t code(float amax, MxElement element) { return mx_even(amax, element); }

}  // namespace

extern const ScaleRule kMxEven;
const ScaleRule kMxEven = mx_rule<code>("mx.even", "amax rounded to the element's mantissa first, then floor");

}  // namespace nibble
