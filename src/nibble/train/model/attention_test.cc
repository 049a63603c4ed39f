#include "nibble/train/model/attention.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <cmath>
#include <string>
#include <vector>

#include "nibble/train/model/random_tensor_for_test.h"

namespace nibble {
namespace {

using testing::random_tensor;
using torch::Tensor;

struct Case {
  int64_t batch, tokens, heads, groups, width, value_width, window;
  bool sinks;
};

struct Passes {
  Tensor q, k, v, sinks, weights;
  explicit Passes(const Case& one)
      : q(random_tensor(1, {one.batch, one.tokens, one.heads, one.width})),
        k(random_tensor(2, {one.batch, one.tokens, one.groups, one.width})),
        v(random_tensor(3, {one.batch, one.tokens, one.groups, one.value_width})),
        sinks(one.sinks ? random_tensor(4, {one.heads}) : Tensor()),
        weights(random_tensor(5, {one.batch, one.tokens, one.heads, one.value_width}).detach()) {}

  // The result and all gradients of its weighted sum.
  std::vector<Tensor> run(bool tiled, const AttentionSettings& settings) const {
    const Tensor out =
        tiled ? causal_attention(q, k, v, sinks, settings) : attention_by_products(q, k, v, sinks, settings);
    std::vector<Tensor> inputs = {q, k, v};
    if (sinks.defined()) inputs.push_back(sinks);
    std::vector<Tensor> all = torch::autograd::grad({(out * weights).sum()}, inputs);
    all.push_back(out.detach());
    return all;
  }
};

// One tile, several, one more than a tile, keys that share a head, windows narrower and wider than a tile.
TEST(Attention, tiles_give_what_the_whole_square_gives) {
  const Case cases[] = {{2, 7, 2, 1, 8, 8, 0, false},   {1, 129, 4, 2, 16, 8, 0, false},  {1, 300, 2, 2, 8, 8, 0, true},
                        {2, 200, 4, 1, 8, 16, 5, true}, {1, 300, 2, 1, 8, 8, 150, false}, {1, 1, 2, 1, 8, 8, 0, true}};
  for (const Case& one : cases) {
    const Passes passes(one);
    const AttentionSettings settings{0.3, one.window};
    const std::vector<Tensor> tiled = passes.run(true, settings), whole = passes.run(false, settings);
    ASSERT_EQ(tiled.size(), whole.size());
    for (size_t i = 0; i < tiled.size(); ++i) {
      EXPECT_LT((tiled[i] - whole[i]).abs().max().item<double>(), 3e-5)
          << "result " << i << " of " << one.tokens << " tokens, window " << one.window;
    }
  }
}

// By hand: one head, scale 1, v the identity shows the weights themselves.
TEST(Attention, weights_are_softmax_over_the_tokens_before) {
  const Tensor q = torch::ones({1, 2, 1, 1}), k = torch::tensor({0.0F, 1.0F}).view({1, 2, 1, 1});
  const Tensor v = torch::eye(2).view({1, 2, 1, 2});
  const Tensor out = causal_attention(q, k, v, {}, {1, 0});
  EXPECT_EQ(out[0][0][0][0].item<float>(), 1);
  EXPECT_NEAR(out[0][1][0][1].item<double>(), 1 / (1 + std::exp(-1.0)), 1e-6);
  // A sink of 0 takes a part: e^0 / (e^0 + e^0) of the first token.
  const Tensor sunk = causal_attention(q, k, v, torch::zeros({1}), {1, 0});
  EXPECT_NEAR(sunk[0][0][0][0].item<double>(), 0.5, 1e-6);
}

}  // namespace
}  // namespace nibble
