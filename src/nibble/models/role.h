// What a tensor is for. Quantization policy, byte counts, sharding and loading go by role, never by parts of names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace nibble {

enum class Role : uint8_t {
  kRoutedExpert,
  kSharedExpert,
  kDenseMlp,
  kAttention,  // projections, sinks, convolutions and decay of linear attention, indexers, KV scales, rotary tables
  kLatent,     // projections into and out of the routed experts' latent space
  kRouter,     // with its biases, correction bias and token table; the gate of shared experts
  kNorm,       // with the other small parameters of the residual stream: hyper-connections, attention residuals
  kEmbedding,
  kHead,
  kMtp,   // multi-token prediction: everything in its layers, unless asked
  kBias,  // of projections
  kUnknown,
};

std::string_view role_name(Role role);  // "routed_expert"
std::optional<Role> parse_role(std::string_view name);
std::span<const Role> all_roles();

// Which matrix of its block: names differ by family (w1 = gate, w3 = up, w2 = down), this does not.
enum class Projection : uint8_t {
  kNone,
  kGate,
  kUp,
  kDown,
  kGateUp,
  kQ,
  kK,
  kV,
  kO,
  kQkv,
  kQa,
  kQb,
  kKva,
  kKvb,
  kHeads,  // other inputs of an attention's heads, whose rows are the heads' in turn: gates, decays, Mamba-2's
           // projection
  kOther
};

// How the matrices of experts are put into one tensor: kStackedExperts is one projection of all experts, (E, N, K);
// the other two are stacks of gate and up together, (E, 2I, H), rows of gate first or alternating (row 2i gate i).
enum class Fusion : uint8_t { kNone, kStackedExperts, kGateThenUp, kInterleaved };

}  // namespace nibble
