// The MoE layer on a GPU, W4A16: for every token t
//
//   ids, p = route(logits[t])                                     topk experts and their weights
//   h[e]   = act(gate_up[e] x[t] + bias)      rounded to BF16     (I), for the experts e of t
//   out[t] = sum over e of p[e] (down[e] h[e] + bias)             (H), summed in the order of the choice
//
// Weights in the layout of fragment_layout.h; x and out BF16 (T, H), rows contiguous; sums in float32. Launches enqueue
// work on a stream and return: no host synchronisation and no allocation, so they can be captured in a CUDA graph. A
// call repeats its bits from run to run. Pointers are the device's unless they say host.
//
// Activations have to be of magnitude below 2^64 with E2M1 weights: beyond, the result is infinite or no number.
//
// Errors: check_moe_layer() names what a launch would refuse, with the numbers; launch_moe_layer() throws it. Contents
// are not checked: ids outside [0, E) count as -1, so that nothing outside the weights is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "nibble/kernels/cuda/fragment_layout.h"

namespace nibble {

enum class MoeRouterKind : uint8_t {
  kGiven,        // `ids` and `given_weights`
  kSoftmaxTopK,  // the topk largest logits, softmax over them (gpt-oss; Qwen3 and Mixtral, normalised)
  kSigmoidBias,  // largest sigmoid(logit) + correction; weights sigmoid(logit), normalised, times `scaling` (Kimi-K2)
};

enum class GateKind : uint8_t {
  kSilu,           // gate sigmoid(gate) up
  kClampedSwiglu,  // gpt-oss: gate at most 7, up in [-7, 7], gate sigmoid(1.702 gate) (up + 1)
};

inline constexpr uint64_t kMoeTokensAtMost = 16;  // of a launch
inline constexpr uint64_t kMoeTopKAtMost = 8;
inline constexpr uint64_t kMoeRoutedAtMost = 512;  // experts that the router knows

struct MoeShape {
  uint64_t experts = 0;         // E: of this rank
  uint64_t routed_experts = 0;  // that the router chooses from
  uint64_t first_expert = 0;    // id of this rank's expert 0; chosen experts of other ranks add nothing
  uint64_t topk = 0;
  uint64_t hidden = 0;        // H
  uint64_t intermediate = 0;  // I
  MoeRouterKind router = MoeRouterKind::kSoftmaxTopK;
  GateKind gate = GateKind::kSilu;
  float scaling = 1;
};

// One of the two matrices of all experts: expert e at data + e * layout.bytes(), aligned to 16.
struct ExpertMatrix {
  FragmentLayout layout;
  const std::byte* data = nullptr;
  // (E, 2): what sums are multiplied with, for rows g and for rows g + 8 of every row tile: the factor of
  // pack_fragments times the second-level scale, which gate and up may have apart.
  const float* factors = nullptr;
  const float* bias = nullptr;  // (E, N) in the layout's order of rows, or null
};

struct MoeLayer {
  MoeShape shape;
  ExpertMatrix gate_up;  // (2I, H), gate and up interleaved by eights
  ExpertMatrix down;     // (H, I)
};

struct MoeCall {
  uint64_t tokens = 0;                   // T
  const uint16_t* x = nullptr;           // (T, H) BF16
  const float* logits = nullptr;         // (T, routed_experts), unless the routing is given
  const float* correction = nullptr;     // (routed_experts), kSigmoidBias
  const int32_t* ids = nullptr;          // (T, topk), kGiven: of this rank, -1 for none
  const float* given_weights = nullptr;  // (T, topk), kGiven
  uint16_t* out = nullptr;               // (T, H) BF16
  std::byte* workspace = nullptr;  // moe_workspace_bytes(); zero before its first use, never shared by two streams
  // Start while the launch before it on the stream still runs and wait for it on the device (programmatic dependent
  // launch).
  bool chained = false;
};

// "" or what is wrong, with the numbers.
std::string check_moe_layer(const MoeLayer& layer, const MoeCall& call);

uint64_t moe_workspace_bytes(const MoeShape& shape);

// Why there is no GPU for these kernels ("built without CUDA", "no device", "compute capability 7.5 is below 8.0"), or
// "".
std::string moe_device_obstacle();

// Enqueues the layer on `stream` (a cudaStream_t). Error if it is refused or the launch fails.
void launch_moe_layer(const MoeLayer& layer, const MoeCall& call, void* stream);

}  // namespace nibble
