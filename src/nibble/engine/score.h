// Sequences through a model that is streamed layer by layer from its files: one read of the weights, whatever the
// number of sequences, and memory for one layer, the sequences' states and one layer's keys and values. The same
// arithmetic as Engine's, to the bit.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "nibble/engine/engine.h"

namespace nibble {

struct ScoreProgress {
  uint64_t layer = 0, layers = 0;
};

// Hears the logits (count, V) of tokens [first, first + count) of a sequence, each sequence in order of its tokens.
using ScoreSink = std::function<void(uint64_t sequence, uint64_t first, uint64_t count, std::span<const float> logits)>;

// Weights are read from `checkpoint` as they are needed and given back. Error for an empty sequence, and for a token
// that the vocabulary does not have.
void score(const Checkpoint& checkpoint, const Model& model, const EngineOptions& options,
           const std::vector<std::vector<TokenId>>& sequences, ThreadPool* pool, const ScoreSink& sink,
           const std::function<void(ScoreProgress)>& progress = {});

}  // namespace nibble
