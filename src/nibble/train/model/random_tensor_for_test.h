// For tests: seeded float32 inputs whose gradients are asked for.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "nibble/base/rng.h"

namespace nibble::testing {

// Standard normal, in C order.
inline torch::Tensor random_tensor(uint64_t seed, const std::vector<int64_t>& shape) {
  torch::Tensor tensor = torch::empty(shape, torch::kFloat32);
  auto* data = tensor.data_ptr<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    data[i] = static_cast<float>(random_normal(seed, static_cast<uint64_t>(i)));
  }
  return tensor.set_requires_grad(true);
}

}  // namespace nibble::testing
