// The next token from logits: the largest, or drawn. Drawing is a choice of the largest as well, of log p + Gumbel
// noise that depends on (seed, chain, position, token) alone: the same noise for two models makes their outputs
// comparable, and nothing depends on the order in which tokens were drawn. Ties go to the lowest id.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "nibble/tokenizer/tokenizer.h"

namespace nibble {

struct SamplerOptions {
  double temperature = 0;  // 0: greedy
  double top_p = 1;        // the fewest most probable tokens that have this share together; after temperature and top_k
  uint64_t top_k = 0;      // 0: all
  uint64_t seed = 0;
};

// A NaN loses against every number; nullopt if all are NaN. `position`: of the token that is chosen.
std::optional<TokenId> choose_token(std::span<const float> logits, const SamplerOptions& options, uint64_t chain,
                                    uint64_t position);

}  // namespace nibble
