// AdamW with gradients clipped by their common norm, step by step in the framework's plain operations: the state is two
// tensors a weight and the number of steps, and a run that goes on from them gives the same bits.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "nibble/train/loop/config.h"

namespace nibble {

class AdamW {
 public:
  // Of the weights that require a gradient; the others are left alone. Matrices decay, vectors do not.
  AdamW(const std::vector<torch::Tensor>& weights, const OptimizerConfig& config);

  // Uses the gradients and clears them. Returns their norm before it was clipped; where that is no number, nothing is
  // changed.
  double step(double learning_rate);

  uint64_t steps() const { return steps_; }
  void set_steps(uint64_t steps) { steps_ = steps; }
  // One a weight; undefined where it is not trained.
  std::vector<torch::Tensor>& first_moments() { return first_; }
  std::vector<torch::Tensor>& second_moments() { return second_; }

 private:
  std::vector<torch::Tensor> weights_, first_, second_;
  OptimizerConfig config_;
  uint64_t steps_ = 0;
};

}  // namespace nibble
