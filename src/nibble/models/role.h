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
  kAttention,
  kLatent,  // projections into and out of the routed experts' latent space
  kRouter,
  kNorm,
  kEmbedding,
  kHead,
  kMtp,  // multi-token prediction: everything in its layers, unless asked
  kBias,
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
  kOther
};

}  // namespace nibble
