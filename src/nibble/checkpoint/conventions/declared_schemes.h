// From the words in which configurations speak of a format to the format. What is not known is an Error with file, key
// and value: a guess would count wrong bytes without a word.
//
// Configurations do not say everything. The type of a scale that multiplies is the model's own for integers and for
// compressed-tensors' floats, float32 for ModelOpt's and DeepSeek's (some releases of these use BF16: two bytes less
// for each block of 16,384 weights).
#pragma once

#include <optional>
#include <string>

#include "nibble/checkpoint/quant_hints.h"
#include "nibble/numerics/format.h"

namespace nibble {

// A group of compressed-tensors, or ModelOpt's in the same form.
Format group_format(const QuantGroup& group, const std::string& source);
// ModelOpt's quant_algo, which stands at `key`.
Format algorithm_format(const std::string& algorithm, std::optional<int64_t> group_size, const std::string& key,
                        const std::string& source);
// quant_method "fp8" and "mxfp8": matrices that nothing else is said of.
Format eight_bit_format(const QuantHints& hints);
// Does a configuration in FP8 say nothing of blocks, so that loaders choose? Releases that name their experts' type
// leave the size out, and their loaders know it.
bool leaves_blocks_open(const QuantHints& hints);
// `expert_dtype` and `store_dtype`; nullopt: routed experts are stored as the others.
std::optional<Format> expert_format(const QuantHints& hints);
// GPTQ and AWQ.
Format word_packed_format(const QuantHints& hints);

// The Error for a value that is not known.
Error unknown_setting(const std::string& source, const std::string& key, const std::string& value);

}  // namespace nibble
