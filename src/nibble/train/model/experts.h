// Routed experts, tokens grouped by expert, with the router's choice and its balance loss.
//
// Gradients run through permutations in both directions, never through sums over equal indices: every pass gives the
// same bits on every device.
#pragma once

#include <torch/types.h>

#include <functional>

#include "nibble/models/model_spec.h"
#include "nibble/train/model/elementwise.h"

namespace nibble {

struct TokenRouting {
  torch::Tensor experts;  // (T, k) int64: by falling score, of equal scores the lower expert
  torch::Tensor weights;  // (T, k)
  torch::Tensor chances;  // (T, E): softmax over all experts
};

// `logits` (T, E). Softmax routers of both kinds (models/model_spec.h).
TokenRouting choose_experts(const torch::Tensor& logits, const ModelSpec& spec);

// As in the field (Switch Transformer; transformers' load_balancing_loss_func): E · Σ_e share_e · chance_e, share_e the
// slots that went to expert e over the tokens, chance_e its mean chance. Evenly routed it is k.
torch::Tensor balance_loss(const TokenRouting& routing);

struct ExpertWeights {
  torch::Tensor gate_up, down;            // (E, 2I, H), (E, H, I)
  torch::Tensor gate_up_bias, down_bias;  // (E, 2I), (E, H); undefined: none
};

// Σ over a token's slots of weight · expert(x): x (T, H). `rounded` is put on what meets the matrices; empty: nothing.
torch::Tensor run_experts(const torch::Tensor& x, const TokenRouting& routing, const ExpertWeights& weights,
                          const SwigluSettings& activation,
                          const std::function<torch::Tensor(const torch::Tensor&)>& rounded = {});

}  // namespace nibble
