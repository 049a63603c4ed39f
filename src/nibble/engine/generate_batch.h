// Many answers at once: each pass takes the next tokens of every sequence that still runs. Bit for bit what generate()
// writes for each alone, since no result of the engine depends on the batch.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nibble/engine/generate.h"

namespace nibble {

struct BatchAnswer {
  std::vector<TokenId> tokens;  // those that were chosen; an end token is the last
  Finish finish = Finish::kLength;
};

struct BatchGenerateOptions {
  uint64_t tokens = 256;  // chosen ones of each answer, at most
  SamplerOptions sampler;
  std::vector<uint64_t> chains;  // whose noise each sequence draws; empty: 0, 1, …
  std::vector<TokenId> end_tokens;
  uint64_t most_sequences = 0;  // in a pass; 0: all. The others wait, which bounds the memory of caches
};

// What is put behind the token that `sequence` has just chosen as its `step`-th (0-based), before it goes on: inputs of
// a checkable task.
using GivenTokens = std::function<std::vector<TokenId>(uint64_t sequence, uint64_t step)>;

// Answers in the order of the prompts. `progress` hears how many tokens were chosen since the last call. Error for a
// prompt that check_length() or check_tokens() refuses.
std::vector<BatchAnswer> generate_batch(Engine* engine, const std::vector<std::vector<TokenId>>& prompts,
                                        const BatchGenerateOptions& options, const GivenTokens& given = {},
                                        const std::function<void(uint64_t tokens)>& progress = {});

}  // namespace nibble
