#include "nibble/verify/scale_stats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "nibble/base/rng.h"

namespace nibble {
namespace {

// By the definitions of ScaleStats, one scale after the other.
ScaleStats one_by_one(const std::vector<float>& scales) {
  ScaleStats stats;
  for (size_t i = 0; i < scales.size(); ++i) {
    const float scale = scales[i];
    ++stats.count;
    if (std::isnan(scale) || std::isinf(scale) || scale < 0) {
      ++(std::isnan(scale) ? stats.nans : std::isinf(scale) ? stats.infinities : stats.negatives);
      if (!stats.first_bad) stats.first_bad = i;
    } else if (scale == 0) {
      ++stats.zeros;
    } else {
      const double value = static_cast<double>(scale);
      stats.min = stats.good == 0 ? value : std::min(stats.min, value);
      stats.max = std::max(stats.max, value);
      ++stats.good;
      stats.log2_fixed += static_cast<int64_t>(std::bit_cast<uint32_t>(scale)) - (int64_t{127} << 23);
      int exponent = 0;
      stats.powers_of_two += std::frexp(value, &exponent) == 0.5 ? 1u : 0u;
    }
  }
  return stats;
}

void expect_same(const std::vector<float>& scales) {
  std::vector<std::byte> stored(scales.size() * sizeof(float));
  if (!scales.empty()) std::memcpy(stored.data(), scales.data(), stored.size());
  ScaleStats found;
  add_scales(stored, ScaleType::kF32, 0, &found);
  const ScaleStats expected = one_by_one(scales);
  EXPECT_EQ(found.count, expected.count);
  EXPECT_EQ(found.zeros, expected.zeros);
  EXPECT_EQ(found.negatives, expected.negatives);
  EXPECT_EQ(found.nans, expected.nans);
  EXPECT_EQ(found.infinities, expected.infinities);
  EXPECT_EQ(found.powers_of_two, expected.powers_of_two);
  EXPECT_EQ(found.min, expected.min);
  EXPECT_EQ(found.max, expected.max);
  EXPECT_EQ(found.good, expected.good);
  EXPECT_EQ(found.log2_fixed, expected.log2_fixed);
  EXPECT_EQ(found.first_bad, expected.first_bad);
}

std::vector<float> ordinary(size_t count) {
  std::vector<float> scales(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = random_bits(3, i);
    scales[i] =
        std::ldexp(bits % 5 == 0 ? 1.0f : 1 + static_cast<float>(bits % 1000) / 1024, static_cast<int>(i % 200) - 100);
  }
  return scales;
}

TEST(ScaleStats, OrdinaryScalesOfEveryLength) {
  for (const size_t count : {0u, 1u, 255u, 256u, 257u, 1000u}) expect_same(ordinary(count));
}

TEST(ScaleStats, EndsOfTheRange) {
  expect_same({std::numeric_limits<float>::max(), std::numeric_limits<float>::min(), 1});
  expect_same(
      {std::numeric_limits<float>::denorm_min(), std::bit_cast<float>(0x007fffffu), std::bit_cast<float>(0x00400000u)});
}

TEST(ScaleStats, OneOfAnotherKindAnywhere) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  for (const float odd : {0.0f, -0.0f, -1.0f, kNan, -kNan, kInf, -kInf, 0x1p-130f, -0x1p-149f}) {
    for (const size_t at : {0u, 100u, 255u, 256u, 700u}) {
      auto scales = ordinary(701);
      scales[at] = odd;
      expect_same(scales);
    }
  }
}

}  // namespace
}  // namespace nibble
