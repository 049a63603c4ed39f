// What the kernel for few tokens is told: moe_layer.h's layer and call, flat and checked.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "nibble/kernels/cuda/moe_layer.h"

namespace nibble {

// Division by a number that the host knows, of numbers below 2^31: a product and a shift.
struct Divisor {
  uint32_t divisor = 1, multiplier = 1, shift = 0;
  Divisor() = default;
  explicit Divisor(uint32_t by) : divisor(by) {
    while ((uint64_t{1} << shift) < by) ++shift;
    multiplier = static_cast<uint32_t>((((uint64_t{1} << shift) - by) << 32) / by + 1);
  }
};

struct FewTokensMatrix {
  const uint8_t* data = nullptr;
  const float* factors = nullptr;
  const float* bias = nullptr;
  uint64_t expert_bytes = 0;
  uint32_t row_tile_bytes = 0, k = 0, n = 0;
  uint32_t stage_tiles = 0;  // that a stage of the ring brings
  Divisor row_tiles, tiles;
};

struct FewTokensArgs {
  FewTokensMatrix matrix[2];  // gate_up, down
  const uint16_t* x = nullptr;
  const float* logits = nullptr;
  const float* correction = nullptr;
  const int32_t* ids = nullptr;
  const float* given_weights = nullptr;
  uint16_t* out = nullptr;
  uint64_t* calls = nullptr;  // in units of 2^-32 calls: what finished blocks have added
  uint2* hidden = nullptr;    // h, two BF16 and a flag
  uint2* sums = nullptr;      // down's sums, a float32 and a flag
  uint32_t tokens = 0, topk = 0, experts = 0, routed = 0, first_expert = 0;
  uint32_t hidden_size = 0, intermediate = 0;
  MoeRouterKind router = MoeRouterKind::kGiven;
  GateKind gate = GateKind::kSilu;
  float scaling = 1;
  Divisor blocks;              // of the grid
  Divisor chunks[2];           // of 8 activations, of x and of h
  uint32_t staging_bytes = 0;  // of shared memory for activations
};

}  // namespace nibble
