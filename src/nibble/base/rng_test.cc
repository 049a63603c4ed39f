#include "nibble/base/rng.h"

#include <gtest/gtest.h>

#include <bit>
#include <unordered_set>

namespace nibble {
namespace {

// Weights, goldens and samples depend on these values: they may never change.
TEST(Rng, ValuesAreFixed) {
  static_assert(random_bits(0, 0) == 0xE220A8397B1DCDAF);  // SplitMix64's first output for state 0
  static_assert(random_bits(0, 1) == 0x6E789E6AA1B965F4);
  static_assert(random_bits(0, 2) == 0x06C45D188009454F);
}

TEST(Rng, StreamsDiffer) {
  std::unordered_set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    for (uint64_t i = 0; i < 300; ++i) seen.insert(random_bits(seed, i));
  }
  EXPECT_EQ(seen.size(), 90'000u);
}

TEST(Rng, EveryBitIsFair) {
  constexpr int kDraws = 100'000;
  int ones[64] = {};
  for (uint64_t i = 0; i < kDraws; ++i) {
    const uint64_t bits = random_bits(42, i);
    for (int bit = 0; bit < 64; ++bit) ones[bit] += static_cast<int>(bits >> bit & 1);
  }
  for (const int count : ones) EXPECT_NEAR(2.0 * count, kDraws, 2.0 * 5 * 158);  // five standard deviations
}

TEST(Rng, UniformIsInTheUnitInterval) {
  constexpr uint64_t kDraws = 200'000;
  double sum = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double u = random_uniform(7, i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(1.0 / 12 / kDraws));
}

TEST(Rng, NormalHasItsMoments) {
  constexpr uint64_t kDraws = 400'000;
  double moments[5] = {};
  double neighbours = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double z = random_normal(11, i);
    ASSERT_TRUE(std::isfinite(z));
    double power = 1;
    for (double& moment : moments) {
      moment += power / kDraws;
      power *= z;
    }
    neighbours += z * random_normal(11, i + 1) / kDraws;
  }
  // Five standard errors of each.
  const double error = 5 / std::sqrt(kDraws);
  EXPECT_NEAR(moments[1], 0, error);
  EXPECT_NEAR(moments[2], 1, error * std::sqrt(2));
  EXPECT_NEAR(moments[3], 0, error * std::sqrt(15));
  EXPECT_NEAR(moments[4], 3, error * std::sqrt(96));
  EXPECT_NEAR(neighbours, 0, error);
}

}  // namespace
}  // namespace nibble
