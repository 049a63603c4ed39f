// The trainable decoder: token ids in, logits out, for the families of trained_tensors.h. The same computation as the
// engine's (engine/forward.cc), whole sequences at a time and with gradients; a test holds the two together.
//
//   const Decoder decoder(tensors, device);
//   std::vector<torch::Tensor> masters = decoder.parameters(tensors);
//   const DecoderOutput out = decoder.run(masters, tokens);      // or what weight_values.h makes of the masters
//
// Weights are a list in the order of TrainedTensors::list(), so that the caller decides what the passes see.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "nibble/engine/layers/rope.h"
#include "nibble/train/model/experts.h"
#include "nibble/train/model/trained_tensors.h"

namespace nibble {

struct DecoderOutput {
  torch::Tensor logits;   // (B · T, V)
  torch::Tensor balance;  // mean over the layers with experts of balance_loss(); undefined without any
};

class Decoder {
 public:
  Decoder(const TrainedTensors& tensors, torch::Device device);

  // The masters as tensors on the device, of which those require a gradient whose role is trained (empty: all).
  std::vector<torch::Tensor> parameters(const TrainedTensors& tensors, const std::vector<Role>& trained) const;

  // `tokens` (B, T) int64 on the device, all in the vocabulary. `rounded` is put on activations that meet routed
  // experts (and dense or shared MLPs, where `round_dense`).
  DecoderOutput run(const std::vector<torch::Tensor>& weights, const torch::Tensor& tokens) const;

  using Rounding = std::function<torch::Tensor(const torch::Tensor&)>;
  void round_activations(Rounding rounding, std::vector<Role> roles);

 private:
  // Indices of a layer's tensors; -1: there is none.
  struct Layer {
    int64_t input_norm = -1, post_norm = -1, qkv = -1, qkv_bias = -1, o = -1, o_bias = -1, q_norm = -1, k_norm = -1,
            sinks = -1, router = -1, router_bias = -1, shared_gate = -1;
    struct Mlp {
      int64_t gate_up = -1, gate_up_bias = -1, down = -1, down_bias = -1;
    } experts, dense, shared;
    int64_t window = 0;
  };
  struct Pass;

  Layer find_layer(const TrainedTensors& tensors, int32_t index) const;
  torch::Tensor attend(const Pass& pass, const Layer& layer, const torch::Tensor& x) const;
  torch::Tensor mlp(const Pass& pass, const Layer::Mlp& names, Role role, const torch::Tensor& x) const;
  torch::Tensor moe(Pass* pass, const Layer& layer, const torch::Tensor& x) const;
  Rounding rounding_of(Role role) const;

  ModelSpec spec_;
  torch::Device device_;
  std::vector<Layer> layers_;
  int64_t embedding_ = -1, final_norm_ = -1, head_ = -1;
  RotaryTable rotary_;
  Rounding rounding_;
  std::vector<Role> rounded_roles_;
};

}  // namespace nibble
