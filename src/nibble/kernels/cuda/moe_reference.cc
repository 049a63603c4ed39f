#include "nibble/kernels/cuda/moe_reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nibble/base/parallel.h"

namespace nibble {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double activate(GateKind kind, double gate, double up) {
  if (kind == GateKind::kSilu) return gate * sigmoid(gate) * up;
  gate = std::min(gate, 7.0);
  up = std::clamp(up, -7.0, 7.0);
  return gate * sigmoid(1.702 * gate) * (up + 1);
}

// (N, K) times (K) plus bias.
std::vector<double> product(const std::vector<float>& matrix, const std::vector<double>& x,
                            const std::vector<float>& bias) {
  std::vector<double> out(matrix.size() / x.size());
  constexpr uint64_t kRows = 64;  // of a piece of work
  parallel_for((out.size() + kRows - 1) / kRows, default_threads(), [&](uint64_t piece) {
    for (uint64_t row = piece * kRows; row < std::min<uint64_t>(out.size(), (piece + 1) * kRows); ++row) {
      double sum = bias.empty() ? 0.0 : static_cast<double>(bias[row]);
      const float* weights = matrix.data() + row * x.size();
      for (uint64_t k = 0; k < x.size(); ++k) sum += static_cast<double>(weights[k]) * x[k];
      out[row] = sum;
    }
  });
  return out;
}

}  // namespace

MoeRouting route_reference(const MoeShape& shape, std::span<const float> logits, std::span<const float> correction) {
  const bool biased = shape.router == MoeRouterKind::kSigmoidBias;
  std::vector<int32_t> order(shape.routed_experts);
  std::iota(order.begin(), order.end(), 0);
  // Ranked in float32, as the kernel does: near ties are decided there.
  const auto rank = [&](int32_t id) {
    const auto at = static_cast<size_t>(id);
    return biased ? 1 / (1 + std::exp(-logits[at])) + correction[at] : logits[at];
  };
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return rank(a) > rank(b); });
  MoeRouting out;
  double sum = 0;
  for (uint64_t k = 0; k < shape.topk; ++k) {
    const auto at = static_cast<size_t>(order[k]);
    const double share =
        biased ? sigmoid(logits[at]) : std::exp(double{logits[at]} - logits[static_cast<size_t>(order[0])]);
    const auto id = static_cast<int64_t>(at) - static_cast<int64_t>(shape.first_expert);
    out.ids.push_back(id >= 0 && id < static_cast<int64_t>(shape.experts) ? static_cast<int32_t>(id) : -1);
    out.weights.push_back(share);
    sum += share;
  }
  for (double& weight : out.weights) weight *= (biased ? double{shape.scaling} : 1.0) / sum;
  return out;
}

std::vector<double> moe_reference(const MoeShape& shape, const MoeRouting& routing, std::span<const float> x,
                                  const std::function<const DecodedExpert&(int32_t)>& expert) {
  std::vector<double> out(shape.hidden);
  const std::vector<double> exact(x.begin(), x.end());
  for (uint64_t k = 0; k < routing.ids.size(); ++k) {
    if (routing.ids[k] < 0) continue;
    const DecodedExpert& chosen = expert(routing.ids[k]);
    const std::vector<double> both = product(chosen.gate_up, exact, chosen.gate_up_bias);
    std::vector<double> h(shape.intermediate);
    for (uint64_t i = 0; i < h.size(); ++i) {
      h[i] = activate(shape.gate, both[i / 8 * 16 + i % 8], both[i / 8 * 16 + i % 8 + 8]);
    }
    const std::vector<double> y = product(chosen.down, h, chosen.down_bias);
    for (uint64_t i = 0; i < y.size(); ++i) out[i] += routing.weights[k] * y[i];
  }
  return out;
}

}  // namespace nibble
