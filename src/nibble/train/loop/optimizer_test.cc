#include "nibble/train/loop/optimizer.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

namespace nibble {
namespace {

using torch::Tensor;

// AdamW as published (Loshchilov and Hutter, algorithm 2), one weight in double precision.
struct ByHand {
  double weight, first = 0, second = 0;
  int steps = 0;
  void step(double grad, double rate, const OptimizerConfig& config, bool decays) {
    ++steps;
    first = config.beta1 * first + (1 - config.beta1) * grad;
    second = config.beta2 * second + (1 - config.beta2) * grad * grad;
    const double mean = first / (1 - std::pow(config.beta1, steps));
    const double spread = std::sqrt(second / (1 - std::pow(config.beta2, steps)));
    if (decays) weight -= rate * config.weight_decay * weight;
    weight -= rate * mean / (spread + config.epsilon);
  }
};

TEST(AdamW, follows_the_published_algorithm) {
  OptimizerConfig config;
  config.clip = 0;
  config.weight_decay = 0.1;
  const Tensor matrix = torch::full({1, 1}, 2.0F).set_requires_grad(true);
  const Tensor vector = torch::full({1}, -3.0F).set_requires_grad(true);
  AdamW optimizer({matrix, vector, torch::ones({2, 2})}, config);
  ByHand of_matrix{2}, of_vector{-3};
  for (int i = 0; i < 5; ++i) {
    const double grad = 0.5 * i - 0.8, rate = 0.01 * (i + 1);
    matrix.mutable_grad() = torch::full({1, 1}, grad);
    vector.mutable_grad() = torch::full({1}, 2 * grad);
    EXPECT_NEAR(optimizer.step(rate), std::sqrt(5.0) * std::abs(grad), 1e-6);
    of_matrix.step(grad, rate, config, true);
    of_vector.step(2 * grad, rate, config, false);
    EXPECT_NEAR(matrix.item<double>(), of_matrix.weight, 1e-5);
    EXPECT_NEAR(vector.item<double>(), of_vector.weight, 1e-5);
    EXPECT_FALSE(matrix.grad().defined());
  }
}

TEST(AdamW, clips_by_the_common_norm_and_leaves_out_what_is_no_number) {
  OptimizerConfig config;
  config.clip = 1;
  config.weight_decay = 0;
  const Tensor one = torch::zeros({1}).set_requires_grad(true), other = torch::zeros({1}).set_requires_grad(true);
  AdamW optimizer({one, other}, config);
  one.mutable_grad() = torch::full({1}, 3.0F);
  other.mutable_grad() = torch::full({1}, 4.0F);
  EXPECT_NEAR(optimizer.step(0.1), 5, 1e-6);
  EXPECT_NEAR(optimizer.first_moments()[0].item<double>(), 0.1 * 3 / 5, 1e-6);
  EXPECT_NEAR(optimizer.first_moments()[1].item<double>(), 0.1 * 4 / 5, 1e-6);
  const double before = one.item<double>();
  one.mutable_grad() = torch::full({1}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(std::isnan(optimizer.step(0.1)));
  EXPECT_EQ(one.item<double>(), before);
  EXPECT_EQ(optimizer.steps(), 1U);
}

}  // namespace
}  // namespace nibble
