// One layer after the other over a batch. Knows no checkpoint and holds no weights: they are handed in, so that a model
// may be resident or streamed.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "nibble/engine/batch.h"
#include "nibble/engine/layers/moe.h"
#include "nibble/engine/layers/rope.h"
#include "nibble/engine/multiplier.h"
#include "nibble/engine/weights/model_weights.h"
#include "nibble/tokenizer/tokenizer.h"

namespace nibble {

class Forward {
 public:
  // `spec` must outlive it. `top_k` 0: the model's own number of experts a token.
  Forward(const ModelSpec& spec, ThreadPool* pool, uint64_t top_k = 0);

  // x (T, H) becomes the embeddings of the tokens.
  void embed(const Linear& embedding, std::span<const TokenId> tokens, float* x);
  // x (T, H) through layer `index`; the batch's keys and values are stored in its caches.
  void layer(uint64_t index, const LayerWeights& weights, const Batch& batch, float* x);
  // Logits (rows.size(), V) of some rows of x.
  void logits(const std::vector<float>& final_norm, const Linear& head, const float* x, std::span<const uint64_t> rows,
              float* out);

  Multiplier& multiplier() { return multiplier_; }

 private:
  const RotaryTable& rotary(const LayerSpec& layer);
  // `out` (T, heads · value width): what the output projection takes.
  void gqa(uint64_t index, const GqaWeights& weights, const Batch& batch, const float* x, std::vector<float>* out);
  void mla(uint64_t index, const MlaWeights& weights, const Batch& batch, const float* x, std::vector<float>* out);
  void project_latent(const MlaWeights& weights, uint64_t tokens, const float* x);
  void prepare_latent(const LayerSpec& layer, const MlaWeights& weights, uint64_t row, uint64_t position);
  void prepare_heads(const LayerSpec& layer, const GqaWeights& weights, uint64_t position, float* q, float* k);
  void store(uint64_t index, const Batch& batch, const float* keys, uint64_t key_stride, const float* values,
             uint64_t value_stride);
  float softmax_scale(uint64_t width) const;

  const ModelSpec* spec_;
  uint64_t top_k_;
  Multiplier multiplier_;
  MlpRunner mlp_;
  std::vector<RotaryTable> rotary_;  // of full layers, of sliding ones
  std::vector<float> normed_, q_, k_, v_, heads_, projected_, latent_q_;
};

}  // namespace nibble
