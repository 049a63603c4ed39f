// mx.floor: floor(log2 amax) - emax, the conversion of the OCP MX specification; ggml uses it too.
#include "nibble/numerics/rules/mx_rule.h"

namespace nibble {
namespace {

NIBBLE_HD uint32_t code(float amax, MxElement element) { return mx_floor(amax, element); }

}  // namespace

extern const ScaleRule kMxFloor;
const ScaleRule kMxFloor =
    mx_rule<code>("mx.floor", "OCP MX: floor(log2 amax) - emax; the largest values may saturate");

}  // namespace nibble
