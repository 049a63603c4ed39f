// Causal softmax attention of whole sequences, with its gradient.
//
// On the processor a tile of scores lives in the cache and nowhere else: the forward pass keeps each row's log-sum of
// exponents, the backward pass computes the tile again. Keys behind a tile's last query are never multiplied, which
// halves the work. On other devices it is the framework's own fused attention where that can be, else plain products.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace nibble {

struct AttentionSettings {
  double scale = 1;    // of the scores
  int64_t window = 0;  // keys that a query sees, its own included; 0: all before it
};

// q (B, T, heads, D), k (B, T, kv_heads, D), v (B, T, kv_heads, Dv), last dimension contiguous; query heads of one key
// head are neighbours. `sinks` (heads): score of a key without value; undefined: none. Returns (B, T, heads, Dv).
torch::Tensor causal_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                               const torch::Tensor& sinks, const AttentionSettings& settings);

// The same from plain products over the whole square of scores: for other devices, and to test the tiles against.
torch::Tensor attention_by_products(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                                    const torch::Tensor& sinks, const AttentionSettings& settings);

}  // namespace nibble
