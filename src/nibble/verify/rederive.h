// `verify --rederive`: the manifest's recipe is carried out again from BASE, and every byte that quantize would write
// is compared with the byte that is stored: tensors, headers, index, configuration and companions. Nothing is written;
// memory is that of quantize (unit_encoder.h). The inputs' recorded hashes are compared on the way: where BASE is not
// what was quantized, differing bytes prove nothing, and that is what is said.
#pragma once

#include "nibble/verify/rule.h"

namespace nibble {

inline constexpr const char* kRederiveRule = "rederive";

// Findings (rule `rederive`, severity error) and counts depend neither on the number of threads nor on their timing.
// Error for what makes it impossible: no manifest or a malformed one, another contract version, a plan that BASE
// refuses.
Rederived rederive(const VerifyContext& context, Findings* findings);

}  // namespace nibble
