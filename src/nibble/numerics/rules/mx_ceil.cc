// mx.ceil: ceil(log2 amax) - emax, an option of some libraries.
#include "nibble/numerics/rules/mx_rule.h"

namespace nibble {
namespace {

NIBBLE_HD uint32_t code(float amax, MxElement element) { return mx_ceil(amax, element); }

}  // namespace

extern const ScaleRule kMxCeil;
const ScaleRule kMxCeil = mx_rule<code>("mx.ceil", "ceil(log2 amax) - emax: never saturates, coarser than mx.rceil");

}  // namespace nibble
