// Activations in the four-bit float blocks of the weights they meet (W4A4): MXFP4 blocks of 32 for weights with E8M0
// scales, NVFP4 blocks of 16 for E4M3 ones, by the format's default rule (numerics/quantizer.h). A token's blocks
// depend on that token alone: NVFP4's second-level scale is the token's own, never the batch's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nibble/base/thread_pool.h"
#include "nibble/kernels/weight_layout.h"

namespace nibble {

struct E2M1Activations {
  const std::byte* codes = nullptr;   // (T, K / 2), as numerics/encoded.h has them
  const std::byte* scales = nullptr;  // (T, blocks), in the weights' scale type
  const float* second = nullptr;      // (T): the second-level scale, 1 without; NaN for a token that is not finite
  uint64_t tokens = 0, code_stride = 0, blocks = 0;
};

// The format of activations for a layout; "" if there is none: weights are no four-bit floats.
std::string e2m1_activation_format(const WeightLayout& layout);

class E2M1Quantizer {
 public:
  // x (tokens, K) rows `stride` floats apart. Valid until the next call.
  E2M1Activations run(const WeightLayout& layout, const float* x, uint64_t tokens, uint64_t stride,
                      ThreadPool* pool = nullptr);

 private:
  std::vector<std::byte> codes_, scales_;
  std::vector<float> second_;
};

}  // namespace nibble
