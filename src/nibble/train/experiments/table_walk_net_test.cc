#include "nibble/train/experiments/table_walk_net.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "nibble/base/rng.h"

namespace nibble {
namespace {

constexpr TableWalkShape kShape{.symbols = 20, .embedding = 16, .hidden = 64};

std::vector<int64_t> random_labels(const TableWalkShape& shape, uint64_t seed) {
  std::vector<int64_t> labels;
  labels.reserve(static_cast<size_t>(shape.contexts()));
  for (int64_t i = 0; i < shape.contexts(); ++i) {
    labels.push_back(
        static_cast<int64_t>(random_bits(seed, static_cast<uint64_t>(i)) % static_cast<uint64_t>(shape.symbols)));
  }
  return labels;
}

// The network as the header writes it down, for autograd.
torch::Tensor plain_logits(const TableWalkTensors& net, const std::optional<FakeQuant>& how) {
  const int64_t symbols = net.shape.symbols;
  const torch::Tensor context = torch::arange(net.shape.contexts());
  const torch::Tensor older = torch::div(context, symbols, "floor"), newer = torch::remainder(context, symbols);
  const torch::Tensor in = torch::cat({net.embedding.index_select(0, older), net.embedding.index_select(0, newer)}, 1);
  const torch::Tensor w1 = how ? fake_quantize(net.w1, *how) : net.w1;
  const torch::Tensor w2 = how ? fake_quantize(net.w2, *how) : net.w2;
  return torch::addmm(net.c2, torch::relu(torch::addmm(net.c1, in, w1.t())), w2.t());
}

double largest_difference(const torch::Tensor& one, const torch::Tensor& other) {
  return (one - other).abs().max().item<double>();
}

TEST(TableWalkNet, GradientsAreAutograds) {
  for (const bool rounded : {false, true}) {
    const std::optional<FakeQuant> how = rounded ? std::optional(fake_quant_named("int4-g32")) : std::nullopt;
    TableWalkTensors net = initial_table_walk(kShape, 3);
    const std::vector<int64_t> labels = random_labels(kShape, 4);
    TableWalkTensors gradients(kShape);
    TableWalkStep step(kShape, labels);
    const double loss = step.loss(net, how, &gradients);

    for (torch::Tensor* leaf : {&net.embedding, &net.w1, &net.c1, &net.w2, &net.c2})
      *leaf = leaf->detach().clone().requires_grad_(true);
    const torch::Tensor logits = plain_logits(net, how);
    const torch::Tensor wanted = torch::nn::functional::cross_entropy(logits, torch::tensor(labels));
    wanted.backward();
    EXPECT_NEAR(loss, wanted.item<double>(), 1e-5);
    EXPECT_LT(largest_difference(step.logits(net, how), logits.detach()), 2e-5);
    const auto expect_near = [](const torch::Tensor& got, const torch::Tensor& autograd) {
      EXPECT_LT(largest_difference(got, autograd), 2e-5 * autograd.abs().max().item<double>());
    };
    expect_near(gradients.embedding, net.embedding.grad());
    expect_near(gradients.w1, net.w1.grad());
    expect_near(gradients.c1, net.c1.grad());
    expect_near(gradients.w2, net.w2.grad());
    expect_near(gradients.c2, net.c2.grad());
  }
}

TEST(TableWalkNet, AdamIsTorchs) {
  torch::Tensor ours = torch::linspace(-1, 1, 50), theirs = ours.clone().requires_grad_(true);
  Adam adam(50);
  torch::optim::Adam optimizer({theirs}, torch::optim::AdamOptions(1e-2));
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    (theirs * theirs * theirs).sum().backward();
    adam.step(ours, theirs.grad(), 1e-2);
    optimizer.step();
    ASSERT_LT(largest_difference(ours, theirs.detach()), 5e-6) << step;
  }
}

TEST(TableWalkNet, FirstWeightsHaveTheStatedSpread) {
  const TableWalkShape shape;
  EXPECT_EQ(shape.parameters(), 64 * 32 + 224 * 64 + 224 + 64 * 224 + 64);
  const TableWalkTensors net = initial_table_walk(shape, 1);
  EXPECT_NEAR(net.embedding.std().item<double>(), 1, 0.05);
  EXPECT_NEAR(net.w1.abs().max().item<double>(), 1.0 / 8, 1e-3);
  EXPECT_NEAR(net.w1.std().item<double>(), 1.0 / 8 / std::sqrt(3.0), 1e-3);
  EXPECT_NEAR(net.w2.abs().max().item<double>(), 1 / std::sqrt(224.0), 1e-3);
  EXPECT_TRUE(torch::equal(net.all, initial_table_walk(shape, 1).all));
  EXPECT_FALSE(torch::equal(net.all, initial_table_walk(shape, 2).all));
}

TEST(TableWalkNet, CloneSharesNothing) {
  const TableWalkTensors net = initial_table_walk(kShape, 1);
  TableWalkTensors copy = net.clone();
  copy.w1.zero_();
  EXPECT_GT(net.w1.abs().max().item<double>(), 0);
  EXPECT_TRUE(torch::equal(copy.w2, net.w2));
}

}  // namespace
}  // namespace nibble
