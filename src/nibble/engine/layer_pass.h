// Sequences through single layers whose weights are handed in: what a model that is streamed from its files does with
// each layer that it has read. The same arithmetic as Engine's, to the bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nibble/engine/engine.h"

namespace nibble {

// All tokens of some sequences between two layers.
struct SequenceStates {
  uint64_t hidden = 0;
  std::vector<uint64_t> begins = {0};  // of each sequence its first row, and the end of the last
  std::vector<float> rows;             // (begins.back(), H), sequence after sequence

  uint64_t sequences() const { return begins.size() - 1; }
  uint64_t tokens(uint64_t sequence) const { return begins[sequence + 1] - begins[sequence]; }
  const float* row(uint64_t index) const { return rows.data() + index * hidden; }
};

class LayerPass {
 public:
  // `spec` and `pool` must outlive it.
  LayerPass(const ModelSpec& spec, const EngineOptions& options, ThreadPool* pool);

  // The embeddings of the tokens. Error for an empty sequence, and for a token that the vocabulary does not have.
  SequenceStates embed(const Linear& embedding, const std::vector<std::vector<TokenId>>& sequences);
  // Each sequence from nothing through layer `index`: keys and values are made anew and forgotten.
  void run(uint64_t index, const LayerWeights& weights, SequenceStates* states);
  // Logits (rows.size(), V) of some rows.
  void logits(const std::vector<float>& final_norm, const Linear& head, const SequenceStates& states,
              std::span<const uint64_t> rows, float* out);

  static constexpr uint64_t kTokensAtATime = 512;  // bounds the memory of activations

 private:
  const ModelSpec* spec_;
  EngineOptions options_;
  ThreadPool* pool_;
  Forward forward_;  // of the whole model: embeddings and logits
};

}  // namespace nibble
