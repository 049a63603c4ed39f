// How well a model foretells a text: e^(mean negative log-likelihood of its tokens).
//
// The text is cut into windows of `context` tokens, each scored from nothing; counted are the tokens of a window's
// second half behind its first one, which have more than that much before them: llama.cpp's rule to the token, so that
// figures may stand side by side. A last window that is not full is left out, unless it is the only one. Where a
// tokenizer begins its texts with a token, every window begins with it, in the place of its own first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "nibble/engine/engine.h"

namespace nibble {

struct Perplexity {
  uint64_t windows = 0, tokens = 0;  // counted ones
  double mean_nll = 0;               // nats a token
  double standard_error = 0;         // of the mean, over windows; 0 with one
  double perplexity() const;
};

// One token of a window, and what the model would have said there. Its own logit beside the two largest: a choice that
// differs from another program's is judged by their distance.
struct TokenScore {
  uint64_t window = 0, position = 0;
  TokenId token = 0, best = -1, second = -1;  // of equal logits the lower id; -1: nothing but NaN
  float logit = 0, best_logit = 0, second_logit = 0;
  double nll = 0;
  bool counted = false;
};

using TokenSink = std::function<void(const TokenScore& score)>;

// Windows of a text, as above; `begin` is the token that each begins with. Error for fewer than two tokens.
std::vector<std::vector<TokenId>> text_windows(std::span<const TokenId> text, uint64_t context,
                                               std::optional<TokenId> begin = std::nullopt);

// Hears the logits of windows piece by piece, each window's in the order of its tokens (score.h's ScoreSink), and
// counts.
class PerplexityMeter {
 public:
  // `windows` must outlive it. `every_token`: all but a window's first are counted.
  explicit PerplexityMeter(const std::vector<std::vector<TokenId>>& windows, bool every_token = false,
                           TokenSink sink = {});
  void add(uint64_t window, uint64_t first, uint64_t count, std::span<const float> logits);
  Perplexity result() const;

 private:
  uint64_t first_counted(uint64_t length) const;

  const std::vector<std::vector<TokenId>>& windows_;
  bool every_token_;
  TokenSink sink_;
  std::vector<double> sums_;
  std::vector<uint64_t> counts_;
};

// Windows through a model in memory. `progress` hears how many are done, of how many.
void run_windows(Engine* engine, const std::vector<std::vector<TokenId>>& windows, PerplexityMeter* meter,
                 const std::function<void(uint64_t done, uint64_t of)>& progress = {});

// All of the above for a text.
Perplexity measure_perplexity(Engine* engine, std::span<const TokenId> text, uint64_t context);

// The score of `token` under softmax(logits), in float64; window, position and `counted` are left.
TokenScore score_token(std::span<const float> logits, TokenId token);

}  // namespace nibble
