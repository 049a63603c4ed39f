// The MoE layer of moe_layer.h in double precision, on the host: what kernels are compared with. Nothing is rounded
// between the steps, neither h nor the router's weights.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nibble/kernels/cuda/moe_layer.h"

namespace nibble {

// A token's choice.
struct MoeRouting {
  std::vector<int32_t> ids;     // (topk) of this rank, -1 for none
  std::vector<double> weights;  // (topk)
};

// Equal logits: the lower id first. Not for MoeRouterKind::kGiven.
MoeRouting route_reference(const MoeShape& shape, std::span<const float> logits, std::span<const float> correction);

// An expert's weights as they decode, rows in the order of the layout (gate and up interleaved by eights).
struct DecodedExpert {
  std::vector<float> gate_up, down;            // (2I, H), (H, I)
  std::vector<float> gate_up_bias, down_bias;  // (2I), (H), or empty
};

// out (H) of one token. `expert` is asked for those that it chose, from one thread.
std::vector<double> moe_reference(const MoeShape& shape, const MoeRouting& routing, std::span<const float> x,
                                  const std::function<const DecodedExpert&(int32_t)>& expert);

}  // namespace nibble
