#include "nibble/kernels/cuda/moe_layer.h"

#include <fmt/format.h>

#include "nibble/kernels/cuda/moe_workspace.h"

namespace nibble {
namespace {

std::string check_matrix(const ExpertMatrix& matrix, const char* name, uint64_t n, uint64_t k) {
  const FragmentLayout& layout = matrix.layout;
  if (layout.n != n || layout.k != k) {
    return fmt::format("{} is ({}, {}), the shape says ({}, {})", name, layout.n, layout.k, n, k);
  }
  if (n % kFragmentRows != 0 || k % 32 != 0 || k % layout.group != 0) {
    return fmt::format("{} of ({}, {}) in groups of {}: N has to be a multiple of 16, K of 32 and of the group", name,
                       n, k, layout.group);
  }
  if (matrix.data == nullptr || matrix.factors == nullptr) return fmt::format("{} has no data or no factors", name);
  if (reinterpret_cast<uintptr_t>(matrix.data) % 16 != 0) return fmt::format("{} is not aligned to 16 bytes", name);
  return "";
}

std::string check_shape(const MoeShape& shape) {
  if (shape.experts == 0 || shape.topk == 0 || shape.hidden == 0 || shape.intermediate == 0) {
    return "experts, topk, hidden and intermediate have to be at least 1";
  }
  if (shape.topk > kMoeTopKAtMost) return fmt::format("topk = {} is above {}", shape.topk, kMoeTopKAtMost);
  if (shape.router == MoeRouterKind::kGiven) return "";
  if (shape.routed_experts > kMoeRoutedAtMost || shape.routed_experts < shape.topk) {
    return fmt::format("the router chooses {} of {} experts: at most {} are taken", shape.topk, shape.routed_experts,
                       kMoeRoutedAtMost);
  }
  if (shape.first_expert + shape.experts > shape.routed_experts) {
    return fmt::format("experts {} to {} are beyond the router's {}", shape.first_expert,
                       shape.first_expert + shape.experts - 1, shape.routed_experts);
  }
  return "";
}

}  // namespace

std::string check_moe_layer(const MoeLayer& layer, const MoeCall& call) {
  const MoeShape& shape = layer.shape;
  if (std::string wrong = check_shape(shape); !wrong.empty()) return wrong;
  if (std::string wrong = check_matrix(layer.gate_up, "gate_up", 2 * shape.intermediate, shape.hidden);
      !wrong.empty()) {
    return wrong;
  }
  if (std::string wrong = check_matrix(layer.down, "down", shape.hidden, shape.intermediate); !wrong.empty()) {
    return wrong;
  }
  if (layer.gate_up.layout.codes != layer.down.layout.codes || layer.gate_up.layout.scale != layer.down.layout.scale ||
      layer.gate_up.layout.group != layer.down.layout.group) {
    return "gate_up and down have different formats";
  }
  if (call.tokens == 0 || call.tokens > kMoeTokensAtMost) {
    return fmt::format("{} tokens: 1 to {} are taken", call.tokens, kMoeTokensAtMost);
  }
  if (call.x == nullptr || call.out == nullptr || call.workspace == nullptr) return "x, out or the workspace is null";
  const bool given = shape.router == MoeRouterKind::kGiven;
  if (given && (call.ids == nullptr || call.given_weights == nullptr)) return "the given ids or weights are null";
  if (!given && call.logits == nullptr) return "the router's logits are null";
  if (shape.router == MoeRouterKind::kSigmoidBias && call.correction == nullptr)
    return "the router's correction is null";
  return "";
}

uint64_t moe_workspace_bytes(const MoeShape& shape) { return moe_workspace(shape).bytes; }

}  // namespace nibble
