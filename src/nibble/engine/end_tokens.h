// The tokens that end an answer, as the model's files say: generation_config.json, config.json, or a GGUF's keys.
#pragma once

#include <vector>

#include "nibble/checkpoint/checkpoint.h"
#include "nibble/tokenizer/tokenizer.h"

namespace nibble {

// Empty if none of them names one. Error for a generation_config.json that is no JSON.
std::vector<TokenId> end_tokens(const Checkpoint& checkpoint);

}  // namespace nibble
