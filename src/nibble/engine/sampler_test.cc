#include "nibble/engine/sampler.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "nibble/base/rng.h"

namespace nibble {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

TEST(Sampler, greedy_takes_the_largest_and_of_equals_the_first) {
  EXPECT_EQ(choose_token(std::array{1.0F, 3.0F, 3.0F, 2.0F}, {}, 0, 0), 1);
  EXPECT_EQ(choose_token(std::array{kNan, -kInfinity, kNan}, {}, 0, 0), 1);
  EXPECT_EQ(choose_token(std::array{kNan, kNan}, {}, 0, 0), std::nullopt);
}

// Drawn 20,000 times, each token's share is its probability.
TEST(Sampler, shares_are_probabilities) {
  const std::array logits = {0.0F, 1.0F, 2.0F, -kInfinity};
  SamplerOptions options;
  options.temperature = 2;
  options.seed = 5;
  std::array<int, 4> counts{};
  for (uint64_t position = 0; position < 20'000; ++position) {
    ++counts[static_cast<size_t>(choose_token(logits, options, 3, position).value())];
  }
  const double total = 1 + std::exp(0.5) + std::exp(1.0);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(counts[i] / 20'000.0, std::exp(0.5 * static_cast<double>(i)) / total, 0.012);
  }
  EXPECT_EQ(counts[3], 0);
}

TEST(Sampler, top_k_and_top_p_leave_the_most_probable) {
  const std::array logits = {std::log(0.5F), std::log(0.3F), std::log(0.15F), std::log(0.05F)};
  const auto seen = [&](uint64_t top_k, double top_p) {
    SamplerOptions options;
    options.temperature = 1;
    options.top_k = top_k;
    options.top_p = top_p;
    std::vector<bool> ids(4);
    for (uint64_t position = 0; position < 500; ++position) {
      ids[static_cast<size_t>(choose_token(logits, options, 0, position).value())] = true;
    }
    return ids;
  };
  EXPECT_EQ(seen(2, 1), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(seen(0, 0.79), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(seen(0, 0.81), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(seen(0, 0.01), (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(seen(0, 1), (std::vector<bool>{true, true, true, true}));
}

TEST(Sampler, the_same_seed_chain_and_position_draw_the_same) {
  std::vector<float> logits(1000, 0.0F);
  SamplerOptions options;
  options.temperature = 1;
  options.seed = 9;
  const auto token = choose_token(logits, options, 1, 2);
  EXPECT_EQ(choose_token(logits, options, 1, 2), token);
  EXPECT_NE(choose_token(logits, options, 1, 3), token);
  EXPECT_NE(choose_token(logits, options, 2, 2), token);
  options.seed = 10;
  EXPECT_NE(choose_token(logits, options, 1, 2), token);
}

// By definition: the largest of log p + noise, whatever is passed over on the way.
TEST(Sampler, is_the_largest_of_log_p_and_noise_over_large_vocabularies) {
  constexpr size_t kVocabulary = 3000;
  SamplerOptions options;
  options.seed = 9;
  std::vector<float> logits(kVocabulary);
  std::set<TokenId> seen;
  for (uint64_t position = 0; position < 300; ++position) {
    options.temperature = position % 2 == 0 ? 1.0 : 3.0;
    for (size_t i = 0; i < kVocabulary; ++i) {
      logits[i] = static_cast<float>(4 * random_normal(position, i));
    }
    TokenId best = -1;
    double most = 0;
    const uint64_t stream = random_bits(random_bits(options.seed, 5), position);
    for (size_t i = 0; i < kVocabulary; ++i) {
      const double noise = -std::log(-std::log(random_uniform(stream, i) + 0x1p-54));
      const double value = static_cast<double>(logits[i]) / options.temperature + noise;
      if (best >= 0 && value <= most) continue;
      best = static_cast<TokenId>(i);
      most = value;
    }
    EXPECT_EQ(choose_token(logits, options, 5, position), best);
    seen.insert(best);
  }
  EXPECT_GT(seen.size(), 200U);
}

}  // namespace
}  // namespace nibble
