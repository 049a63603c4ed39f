// Routed experts when the batch or the router is not as one would wish: padded rows of NaN, experts without tokens,
// all tokens at one expert.
#include "nibble/engine/layers/moe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "nibble/base/rng.h"
#include "nibble/engine/work.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

constexpr uint64_t kExperts = 8, kHidden = 64;

testing::TinyCheckpoint eight_experts() {
  testing::TinyOptions options;
  options.layers = 1;
  options.experts = kExperts;
  return testing::TinyCheckpoint::qwen3_moe(options);
}

std::vector<float> normal_rows(uint64_t seed, uint64_t rows) {
  std::vector<float> x(rows * kHidden);
  for (uint64_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(random_normal(seed, i));
  return x;
}

// The only layer of a checkpoint.
class MoeLayer {
 public:
  MoeLayer(const testing::TinyCheckpoint& tiny, ActivationKind activations) {
    tiny.write(dir_.path());
    const Checkpoint checkpoint = Checkpoint::open(dir_.path());
    Findings findings;
    model_ = load_model(checkpoint, &findings);
    Arithmetics how;
    how.integer_activations = activations;
    weights_ = WeightLoader(checkpoint, model_, how, &pool_).layer(0).moe;
  }

  std::vector<float> run(const std::vector<float>& x) {
    std::vector<OpWork> steps;  // the router's, gate and up of the chosen experts, their down
    Multiplier multiplier(&pool_);
    multiplier.set_log(&steps);
    MlpRunner runner(model_.spec, &multiplier);
    std::vector<float> out(x.size(), 0.0F);
    runner.add_moe(weights_, x.data(), x.size() / kHidden, 0, out.data());
    experts_read_ =
        steps.at(2).bytes / product_work(weights_.experts[0].down.matrix.layout, ActivationKind::kF32, 1).bytes;
    return out;
  }
  double experts_read() const { return experts_read_; }

 private:
  testing::TempDir dir_;
  Model model_;
  ThreadPool pool_{2};
  MoeWeights weights_;
  double experts_read_ = 0;
};

// 8 real rows in a buffer of 64, the other 56 NaN; behind the real ones, and before them.
TEST(Moe, C67_padded_rows_of_nan_change_no_real_row) {
  struct Scheme {
    const char *layout, *format;
    ActivationKind activations;
  };
  const Scheme schemes[] = {{nullptr, "bf16", ActivationKind::kF32},
                            {"compressed-tensors", "int4-g32", ActivationKind::kF32},
                            {"compressed-tensors", "int4-g32", ActivationKind::kInt8},
                            {"compressed-tensors", "nvfp4", ActivationKind::kF32},
                            {"compressed-tensors", "nvfp4", ActivationKind::kInt8},
                            {"compressed-tensors", "nvfp4", ActivationKind::kE2M1},
                            {"compressed-tensors", "mxfp4", ActivationKind::kInt8},
                            {"compressed-tensors", "mxfp4", ActivationKind::kE2M1},
                            {"deepseek", "fp8-block", ActivationKind::kF32}};
  const std::vector<float> real = normal_rows(1, 8);
  for (const Scheme& scheme : schemes) {
    SCOPED_TRACE(std::string(scheme.format) + ", " + std::string(activation_kind_name(scheme.activations)));
    testing::TinyCheckpoint tiny = eight_experts();
    if (scheme.layout != nullptr) tiny.quantize(scheme.layout, scheme.format);
    MoeLayer layer(tiny, scheme.activations);
    const std::vector<float> wanted = layer.run(real);
    for (const float value : wanted) ASSERT_TRUE(std::isfinite(value));
    for (const uint64_t first : {uint64_t{0}, uint64_t{56}}) {
      std::vector<float> padded(64 * kHidden, std::nanf(""));
      std::copy(real.begin(), real.end(), padded.begin() + static_cast<ptrdiff_t>(first * kHidden));
      const std::vector<float> got = layer.run(padded);
      EXPECT_EQ(std::memcmp(got.data() + first * kHidden, wanted.data(), wanted.size() * sizeof(float)), 0) << first;
    }
  }
}

// Experts without tokens are neither read nor counted: they hold NaN here.
TEST(Moe, experts_without_tokens_are_not_touched) {
  testing::TinyCheckpoint tiny = eight_experts();
  // Router rows of 3 and 6 point along an axis that all tokens have, the others against it.
  std::vector<float> router(kExperts * kHidden, 0.0F);
  for (uint64_t e = 0; e < kExperts; ++e) router[e * kHidden] = e == 3 ? 2.0F : e == 6 ? 1.0F : -4.0F;
  tiny.set_values("model.layers.0.mlp.gate.weight", router);
  std::vector<float> x = normal_rows(2, 5);
  for (uint64_t t = 0; t < 5; ++t) x[t * kHidden] = 3;
  MoeLayer clean(tiny, ActivationKind::kF32);
  const std::vector<float> wanted = clean.run(x);
  EXPECT_EQ(clean.experts_read(), 2);
  for (const std::string& name : tiny.matching("model.layers.0.mlp.experts.*")) {
    if (name.find(".3.") != std::string::npos || name.find(".6.") != std::string::npos) continue;
    tiny.set_values(name, std::vector<float>(tiny.values(name).size(), std::nanf("")));
  }
  MoeLayer poisoned(tiny, ActivationKind::kF32);
  const std::vector<float> got = poisoned.run(x);
  EXPECT_EQ(poisoned.experts_read(), 2);
  for (const float value : wanted) ASSERT_TRUE(std::isfinite(value));
  EXPECT_EQ(std::memcmp(got.data(), wanted.data(), wanted.size() * sizeof(float)), 0);
}

ModelSpec router_spec(RouterKind kind, uint64_t groups) {
  ModelSpec spec;
  spec.experts = kExperts;
  spec.experts_per_token = 3;
  spec.router = kind;
  spec.norm_topk_prob = true;
  spec.n_group = groups;
  spec.topk_group = groups / 2;
  return spec;
}

void expect_different_experts(const ModelSpec& spec, uint64_t k, std::vector<float> logits) {
  std::vector<RoutedExpert> slots(k == 0 ? 3 : k);
  choose_experts(spec, k, {}, logits.data(), slots.data());
  std::vector<int> times(kExperts);
  for (const RoutedExpert& slot : slots) {
    ASSERT_LT(slot.expert, kExperts);
    ++times[slot.expert];
  }
  EXPECT_EQ(*std::max_element(times.begin(), times.end()), 1);
}

// Whatever the router's numbers are, a token's experts exist and are different ones: nothing indexes experts otherwise.
TEST(Router, every_choice_is_an_expert_that_exists) {
  const float nan = std::nanf(""), inf = HUGE_VALF;
  std::vector<std::vector<float>> rows(6, std::vector<float>(kExperts, 0.0F));
  std::fill(rows[0].begin(), rows[0].end(), nan);
  std::fill(rows[1].begin(), rows[1].end(), -inf);
  std::fill(rows[2].begin(), rows[2].end(), inf);
  rows[3] = {nan, inf, -inf, nan, 1, nan, nan, nan};
  rows[4] = {3e38F, -3e38F, 3e38F, 1, 1, 1, 1, nan};
  for (const RouterKind kind : {RouterKind::kSoftmaxTopK, RouterKind::kTopKSoftmax, RouterKind::kSigmoidBias}) {
    for (const uint64_t groups : {uint64_t{0}, uint64_t{2}, uint64_t{4}}) {
      for (const uint64_t k : {uint64_t{0}, uint64_t{1}, kExperts}) {
        for (const std::vector<float>& row : rows) {
          expect_different_experts(router_spec(kind, groups), k, row);
        }
      }
    }
  }
}

}  // namespace
}  // namespace nibble
