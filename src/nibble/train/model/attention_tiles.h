// The tiles of causal_attention() on the processor: one key head of one sequence is one thread's work.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <utility>

namespace nibble {

struct AttentionGradients {
  torch::Tensor q, k, v, sinks;  // sinks undefined without sinks
};

// Shapes as in attention.h; q is scaled already. No tensor may require a gradient.
struct AttentionTiles {
  torch::Tensor q, k, v, sinks;
  int64_t window = 0;

  // The result (B, T, heads, Dv) and, of every row, the logarithm of the sum of exponents (B, T, heads).
  std::pair<torch::Tensor, torch::Tensor> forward() const;
  // Of the scaled q.
  AttentionGradients backward(const torch::Tensor& out, const torch::Tensor& lse, const torch::Tensor& grad) const;
};

}  // namespace nibble
