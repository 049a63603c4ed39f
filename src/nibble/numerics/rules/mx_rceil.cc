// mx.rceil: ceil(log2(amax / max)), as ModelOpt and the Triton quantizer of gpt-oss do.
#include "nibble/numerics/rules/mx_rule.h"

namespace nibble {
namespace {

NIBBLE_HD uint32_t code(float amax, MxElement element) { return mx_rceil(amax, element); }

}  // namespace

extern const ScaleRule kMxRceil;
const ScaleRule kMxRceil = mx_rule<code>("mx.rceil", "ceil(log2(amax / max)): never saturates");

}  // namespace nibble
