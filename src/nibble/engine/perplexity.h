// How well a model foretells a text: e^(mean negative log-likelihood of its tokens).
//
// The text is cut into windows of `context` tokens, each scored from nothing; counted are the tokens of a window's
// second half, which have at least that much before them (as llama.cpp counts, so that figures may stand side by side).
// A last window that is not full is left out, unless it is the only one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "nibble/engine/engine.h"

namespace nibble {

struct Perplexity {
  uint64_t windows = 0, tokens = 0;  // counted ones
  double mean_nll = 0;               // nats a token
  double standard_error = 0;         // of the mean, over windows; 0 with one
  double perplexity() const;
};

// Error for fewer than two tokens. `progress` hears how many windows are done, of how many.
Perplexity measure_perplexity(Engine* engine, std::span<const TokenId> text, uint64_t context,
                              const std::function<void(uint64_t done, uint64_t of)>& progress = {});

// -log p(token) under softmax(logits), in float64.
double negative_log_likelihood(std::span<const float> logits, TokenId token);

}  // namespace nibble
