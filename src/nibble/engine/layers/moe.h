// The MLP of a layer: dense, or routed experts with their shared expert.
#pragma once

#include <cstdint>
#include <vector>

#include "nibble/engine/layers/router.h"
#include "nibble/engine/multiplier.h"
#include "nibble/engine/weights/model_weights.h"

namespace nibble {

// Keeps memory from call to call.
class MlpRunner {
 public:
  MlpRunner(const ModelSpec& spec, Multiplier* multiplier) : spec_(&spec), multiplier_(multiplier) {}

  // Adds the MLP of x (T, H) to `out` (T, H).
  void add_dense(const MlpWeights& weights, const float* x, uint64_t tokens, float* out);

  // Σ over a token's slots, in their order, of weight · expert(x), then the shared expert, added to `out`. `top_k`
  // 0: the model's.
  void add_moe(const MoeWeights& weights, const float* x, uint64_t tokens, uint64_t top_k, float* out);

 private:
  void activate(const float* gate, const float* up, uint64_t n, float* out) const;
  // gate, up, activation, down of x's rows into `result` (tokens, H).
  void run_mlp(const MlpWeights& weights, const float* x, uint64_t tokens, std::vector<float>* result);
  void route(const MoeWeights& weights, const float* x, uint64_t tokens, uint64_t k);
  void run_experts(const MoeWeights& weights, const float* x, uint64_t tokens, uint64_t k);

  const ModelSpec* spec_;
  Multiplier* multiplier_;
  std::vector<float> gate_, up_, hidden_, result_, logits_;
  std::vector<RoutedExpert> slots_;     // (T, k)
  std::vector<uint64_t> expert_begin_;  // (E + 1): rows of each expert among the sorted slots
  std::vector<uint32_t> token_of_row_;  // of each sorted slot
  std::vector<uint64_t> row_of_slot_;   // of each (token, slot)
  std::vector<Product> products_;
};

}  // namespace nibble
