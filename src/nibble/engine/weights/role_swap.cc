#include "nibble/engine/weights/role_swap.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "nibble/base/check.h"

namespace nibble {
namespace {

constexpr std::array kRoles = {Role::kNorm,         Role::kAttention,    Role::kRouter,
                               Role::kSharedExpert, Role::kRoutedExpert, Role::kDenseMlp};

// Calls use(a's field, b's) for each field of a role. Norms of queries, keys and latents are norms, the gate of shared
// experts belongs to the router: as the families' inventories have it.
template <typename A, typename B, typename Use>
void for_fields(A& a, B& b, Role role, const Use& use) {
  switch (role) {
    case Role::kNorm:
      use(a.input_norm, b.input_norm);
      use(a.post_attention_norm, b.post_attention_norm);
      use(a.gqa.q_norm, b.gqa.q_norm);
      use(a.gqa.k_norm, b.gqa.k_norm);
      use(a.mla.q_a_norm, b.mla.q_a_norm);
      return use(a.mla.kv_a_norm, b.mla.kv_a_norm);
    case Role::kAttention:
      use(a.gqa.q, b.gqa.q);
      use(a.gqa.k, b.gqa.k);
      use(a.gqa.v, b.gqa.v);
      use(a.gqa.o, b.gqa.o);
      use(a.gqa.sinks, b.gqa.sinks);
      use(a.mla.q_a, b.mla.q_a);
      use(a.mla.q_b, b.mla.q_b);
      use(a.mla.kv_a, b.mla.kv_a);
      use(a.mla.o, b.mla.o);
      use(a.mla.key_up, b.mla.key_up);
      return use(a.mla.value_up, b.mla.value_up);
    case Role::kRouter:
      use(a.moe.router, b.moe.router);
      use(a.moe.correction, b.moe.correction);
      return use(a.moe.shared_gate, b.moe.shared_gate);
    case Role::kSharedExpert: return use(a.moe.shared, b.moe.shared);
    case Role::kRoutedExpert: return use(a.moe.experts, b.moe.experts);
    case Role::kDenseMlp: return use(a.mlp, b.mlp);
    default: NIBBLE_CHECK(false);
  }
}

bool is_there(const std::vector<float>& values) { return !values.empty(); }
bool is_there(const Linear& matrix) { return matrix.present(); }
bool is_there(const MlpWeights& mlp) { return mlp.present(); }
template <typename T>
bool is_there(const std::vector<T>& several) {
  return !several.empty();
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

bool same(const Linear& a, const Linear& b) {
  if (!a.present() || !b.present()) return a.present() == b.present();
  const WeightLayout& layout = a.matrix.layout;
  if (layout != b.matrix.layout || a.matrix.multiplier != b.matrix.multiplier || a.activations != b.activations ||
      a.rounding != b.rounding || !same(a.bias, b.bias)) {
    return false;
  }
  const auto bytes = [&](uint64_t from, uint64_t end) {
    return end <= from || std::memcmp(a.matrix.data + from, b.matrix.data + from, end - from) == 0;
  };
  // Between tiles and scales that lie apart may be a gap of any content.
  const uint64_t tiles = layout.row_groups() * layout.row_group_bytes();
  return bytes(0, tiles) && (layout.apart_cols == 0 || bytes(layout.apart_offset(), layout.bytes()));
}

bool same(const MlpWeights& a, const MlpWeights& b) {
  return same(a.gate, b.gate) && same(a.up, b.up) && same(a.down, b.down);
}

template <typename T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const T& x, const T& y) { return same(x, y); });
}

}  // namespace

std::span<const Role> layer_roles() { return kRoles; }

bool has_role(const LayerWeights& weights, Role role) {
  bool found = false;
  for_fields(weights, weights, role, [&](const auto& field, const auto&) { found = found || is_there(field); });
  return found;
}

bool same_weights(const Linear& a, const Linear& b) { return same(a, b); }

bool same_weights(const LayerWeights& a, const LayerWeights& b, Role role) {
  bool all = true;
  for_fields(a, b, role, [&](const auto& x, const auto& y) { all = all && same(x, y); });
  return all;
}

void take_weights(const LayerWeights& from, Role role, LayerWeights* to) {
  for_fields(from, *to, role, [](const auto& source, auto& target) { target = source; });
}

}  // namespace nibble
