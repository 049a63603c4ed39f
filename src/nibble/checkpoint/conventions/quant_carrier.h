// One object of quantization settings, in whichever dialect it is written (FORMATS.md §4.1, §5.1, §6.1, §7.1, §8):
// compressed-tensors, FP8 blocks, MXFP4, ModelOpt, GPTQ, AWQ.
#pragma once

#include <string>

#include "nibble/checkpoint/quant_hints.h"

namespace nibble {

// `path` names the file in findings and becomes `source`.
QuantHints read_quant_carrier(const Json& object, const std::string& path, Findings* findings);

}  // namespace nibble
