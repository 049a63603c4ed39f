// How quick a model that is held in memory takes prompts in and answers. Token ids are random, so that they spread over
// the experts; contexts are filled with random keys and values instead of being computed.
#pragma once

#include <cstdint>

#include "nibble/engine/bench/pass_row.h"
#include "nibble/engine/engine.h"

namespace nibble {

class ModelBench {
 public:
  // Both must outlive it. `seconds`: about how long a prompt is measured, once at least.
  ModelBench(Engine* engine, ThreadPool* pool, double seconds) : engine_(engine), pool_(pool), seconds_(seconds) {}

  // Logits of a few tokens, as part of a longer prompt and as decoded after the others, against the reference kernels':
  // the largest difference as a share of the largest logit. 0: the same bits.
  double check();
  // A prompt from nothing, in passes as generate() cuts it; median of the runs.
  PassRow prefill(uint64_t tokens);
  // `tokens` tokens one by one behind a context; mean of them.
  PassRow decode(uint64_t context, uint64_t tokens);

 private:
  std::vector<TokenId> random_tokens(uint64_t seed, uint64_t count) const;
  std::vector<float> logits(CachedSequence* sequence, std::span<const TokenId> tokens);

  Engine* engine_;
  ThreadPool* pool_;
  double seconds_;
};

}  // namespace nibble
