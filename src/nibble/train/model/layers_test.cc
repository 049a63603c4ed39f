// Norm, rotation, SwiGLU and routed experts against the framework's own operations, values and gradients.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <cmath>
#include <vector>

#include "nibble/train/model/elementwise.h"
#include "nibble/train/model/experts.h"
#include "nibble/train/model/random_tensor_for_test.h"

namespace nibble {
namespace {

using testing::random_tensor;
using torch::Tensor;

// Values of both, and the gradients of a weighted sum.
void expect_same(const Tensor& got, const Tensor& wanted, const std::vector<Tensor>& inputs, const char* what) {
  ASSERT_EQ(got.sizes(), wanted.sizes()) << what;
  EXPECT_LT((got - wanted).abs().max().item<double>(), 1e-5) << what;
  const Tensor weights = random_tensor(99, got.sizes().vec()).detach();
  const auto ours = torch::autograd::grad({(got * weights).sum()}, inputs, {}, true);
  const auto theirs = torch::autograd::grad({(wanted * weights).sum()}, inputs, {}, true);
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_LT((ours[i] - theirs[i]).abs().max().item<double>(), 1e-4) << what << ", gradient " << i;
  }
}

TEST(Layers, rms_norm) {
  const Tensor x = random_tensor(1, {5, 3, 8}), weight = random_tensor(2, {8});
  const Tensor wanted = x / torch::sqrt(x.square().mean(-1, true) + 1e-3) * weight;
  expect_same(rms_norm(x, weight, 1e-3), wanted, {x, weight}, "rms_norm");
}

TEST(Layers, rotate) {
  const Tensor x = random_tensor(1, {2, 4, 3, 6}), angles = random_tensor(2, {4, 3}).detach();
  const Tensor c = angles.cos().view({1, 4, 1, 3}), s = angles.sin().view({1, 4, 1, 3});
  const Tensor a = x.narrow(3, 0, 3), b = x.narrow(3, 3, 3);
  expect_same(rotate(x, angles.cos(), angles.sin()), torch::cat({a * c - b * s, b * c + a * s}, 3), {x}, "rotate");
}

TEST(Layers, swiglu) {
  const Tensor x = random_tensor(1, {7, 10});
  const Tensor gate = x.narrow(1, 0, 5), up = x.narrow(1, 5, 5);
  expect_same(swiglu(x, {}), gate * torch::sigmoid(gate) * up, {x}, "plain");
  const Tensor low = torch::minimum(gate, torch::full({1}, 0.7));
  const Tensor between = torch::clamp(up, -0.7, 0.7);
  expect_same(swiglu(x, {0.7, 1.702}), low * torch::sigmoid(1.702 * low) * (between + 1), {x}, "clamped");
}

ModelSpec router_spec(RouterKind router, bool normalised) {
  ModelSpec spec;
  spec.router = router;
  spec.norm_topk_prob = normalised;
  spec.experts = 5;
  spec.experts_per_token = 2;
  return spec;
}

// Every expert over every token, weighted by what the router gives it.
Tensor all_experts(const Tensor& x, const TokenRouting& routing, const ExpertWeights& weights) {
  Tensor sum = torch::zeros_like(x);
  for (int64_t e = 0; e < weights.gate_up.size(0); ++e) {
    const Tensor share = (routing.weights * routing.experts.eq(e)).sum(1, true);
    Tensor wide = torch::mm(x, weights.gate_up[e].t());
    if (weights.gate_up_bias.defined()) wide = wide + weights.gate_up_bias[e];
    Tensor out = torch::mm(swiglu(wide, {}), weights.down[e].t());
    if (weights.down_bias.defined()) out = out + weights.down_bias[e];
    sum = sum + share * out;
  }
  return sum;
}

TEST(Experts, grouped_tokens_give_what_all_experts_give) {
  for (const bool biases : {false, true}) {
    const Tensor x = random_tensor(1, {9, 6}), logits = random_tensor(2, {9, 5});
    ExpertWeights weights{random_tensor(3, {5, 8, 6}), random_tensor(4, {5, 6, 4}), {}, {}};
    std::vector<Tensor> inputs = {x, logits, weights.gate_up, weights.down};
    if (biases) {
      weights.gate_up_bias = random_tensor(5, {5, 8});
      weights.down_bias = random_tensor(6, {5, 6});
      inputs.push_back(weights.gate_up_bias);
      inputs.push_back(weights.down_bias);
    }
    for (const RouterKind router : {RouterKind::kSoftmaxTopK, RouterKind::kTopKSoftmax}) {
      const TokenRouting routing = choose_experts(logits, router_spec(router, true));
      expect_same(run_experts(x, routing, weights, {}), all_experts(x, routing, weights), inputs, "experts");
    }
  }
}

TEST(Experts, choices_come_by_falling_score_and_the_lower_expert_first) {
  const Tensor logits = torch::tensor({1.0F, 3.0F, 3.0F, 2.0F, 3.0F}).view({1, 5});
  const TokenRouting routing = choose_experts(logits, router_spec(RouterKind::kSoftmaxTopK, false));
  EXPECT_EQ(routing.experts[0][0].item<int64_t>(), 1);
  EXPECT_EQ(routing.experts[0][1].item<int64_t>(), 2);
  const double all = std::exp(1.0) + 3 * std::exp(3.0) + std::exp(2.0);
  EXPECT_NEAR(routing.weights[0][0].item<double>(), std::exp(3.0) / all, 1e-6);
  const TokenRouting normalised = choose_experts(logits, router_spec(RouterKind::kSoftmaxTopK, true));
  EXPECT_NEAR(normalised.weights[0][1].item<double>(), 0.5, 1e-6);
}

// Evenly routed tokens with even chances: k. All tokens to the same two of five: 5 · (chance of both).
TEST(Experts, balance_loss) {
  TokenRouting even;
  even.experts = torch::tensor({0, 1, 2, 3, 4, 0, 1, 2, 3, 4}, torch::kInt64).view({5, 2});
  even.chances = torch::full({5, 5}, 0.2);
  EXPECT_NEAR(balance_loss(even).item<double>(), 2, 1e-6);
  TokenRouting uneven;
  uneven.experts = torch::tensor({0, 1, 0, 1}, torch::kInt64).view({2, 2});
  uneven.chances = torch::tensor({0.5F, 0.3F, 0.2F, 0.0F, 0.0F, 0.5F, 0.3F, 0.2F, 0.0F, 0.0F}).view({2, 5});
  EXPECT_NEAR(balance_loss(uneven).item<double>(), 5 * 0.8, 1e-6);
}

}  // namespace
}  // namespace nibble
