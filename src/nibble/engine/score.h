// Sequences through a model that is streamed layer by layer from its files: one read of the weights, whatever the
// number of sequences, and memory for one layer, the sequences' states and one layer's keys and values. The same
// arithmetic as Engine's, to the bit.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "nibble/engine/layer_pass.h"

namespace nibble {

struct ScoreProgress {
  uint64_t layer = 0, layers = 0;
};

// All tokens of some sequences behind the last layer, and the head that turns them into logits where they are wanted:
// logits of a large vocabulary are many times the states' size, and two models' are compared piece by piece.
class ScoredStates {
 public:
  // Reads the weights once, as they are needed, and keeps (T, H) states, the final norm and the head. `model` and
  // `pool` must outlive it. Error for an empty sequence, and for a token that the vocabulary does not have.
  ScoredStates(const Checkpoint& checkpoint, const Model& model, const EngineOptions& options,
               const std::vector<std::vector<TokenId>>& sequences, ThreadPool* pool,
               const std::function<void(ScoreProgress)>& progress = {});

  uint64_t vocabulary() const { return head_.rows(); }
  // Logits (count, V) behind tokens [first, first + count) of a sequence; valid until the next call. At most
  // kTokensAtATime of them bound the memory.
  std::span<const float> logits(uint64_t sequence, uint64_t first, uint64_t count);

  static constexpr uint64_t kTokensAtATime = LayerPass::kTokensAtATime;

 private:
  LayerPass pass_;
  SequenceStates states_;
  std::vector<float> final_norm_;
  Linear head_;
  std::vector<uint64_t> rows_;
  std::vector<float> logits_;
};

// Hears the logits (count, V) of tokens [first, first + count) of a sequence, each sequence in order of its tokens.
using ScoreSink = std::function<void(uint64_t sequence, uint64_t first, uint64_t count, std::span<const float> logits)>;

// The logits of every token.
void score(const Checkpoint& checkpoint, const Model& model, const EngineOptions& options,
           const std::vector<std::vector<TokenId>>& sequences, ThreadPool* pool, const ScoreSink& sink,
           const std::function<void(ScoreProgress)>& progress = {});

}  // namespace nibble
