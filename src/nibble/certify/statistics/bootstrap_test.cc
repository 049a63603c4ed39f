#include "nibble/certify/statistics/bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace nibble {
namespace {

using Weights = std::span<const uint32_t>;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

double mean_under(Weights weights, std::span<const double> values) {
  double sum = 0, count = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    sum += weights[i] * values[i];
    count += weights[i];
  }
  return sum / count;
}

TEST(Bootstrap, each_resample_draws_as_many_clusters_as_there_are) {
  for (const uint64_t clusters : {0U, 1U, 2U, 3U, 10U, 1000U}) {
    for (uint64_t i = 0; i < 50; ++i) {
      const std::vector<uint32_t> weights = resample_weights(clusters, {}, i);
      ASSERT_EQ(weights.size(), clusters);
      EXPECT_EQ(std::accumulate(weights.begin(), weights.end(), uint64_t{0}), clusters);
    }
  }
}

TEST(Bootstrap, a_resample_depends_on_seed_and_index_alone) {
  const std::vector<uint32_t> first = resample_weights(100, {.resamples = 1000, .seed = 3}, 7);
  EXPECT_EQ(resample_weights(100, {.resamples = 5, .seed = 3}, 7), first);
  EXPECT_NE(resample_weights(100, {.resamples = 1000, .seed = 4}, 7), first);
  EXPECT_NE(resample_weights(100, {.resamples = 1000, .seed = 3}, 8), first);
  EXPECT_NE(resample_weights(100, {.resamples = 1000, .seed = 7}, 3), first);
}

// Draws with replacement, all clusters alike: a weight is binomial (n, 1/n), and two of them vary against each other by
// -1/n. Six standard errors.
TEST(Bootstrap, weights_have_the_moments_of_draws_with_replacement) {
  constexpr uint64_t kClusters = 8, kResamples = 20000;
  std::array<double, kClusters> sum = {};
  double squares = 0, products = 0;
  for (uint64_t i = 0; i < kResamples; ++i) {
    const std::vector<uint32_t> weights = resample_weights(kClusters, {}, i);
    for (size_t c = 0; c < kClusters; ++c) {
      sum[c] += weights[c];
      squares += std::pow(weights[c] - 1.0, 2);
      products += (weights[c] - 1.0) * (weights[(c + 1) % kClusters] - 1.0);
    }
  }
  constexpr double kVariance = 1 - 1.0 / kClusters;
  for (const double one : sum) EXPECT_NEAR(one / kResamples, 1, 6 * std::sqrt(kVariance / kResamples));
  EXPECT_NEAR(squares / kResamples / kClusters, kVariance, 6 * 2 / std::sqrt(kResamples * kClusters));
  EXPECT_NEAR(products / kResamples / kClusters, -1.0 / kClusters, 6 / std::sqrt(kResamples * kClusters));
}

TEST(Bootstrap, percentiles_by_hand) {
  // 41 values: 2.5 % is exactly the second, 97.5 % the second from above.
  std::vector<double> values(41);
  std::iota(values.rbegin(), values.rend(), 0.0);
  const Band whole = percentile_band(&values);
  EXPECT_EQ(whole.low, 1);
  EXPECT_EQ(whole.high, 39);
  // Two values: 2.5 % of the way from one to the other.
  values = {20, 10};
  EXPECT_DOUBLE_EQ(percentile_band(&values).low, 10.25);
  EXPECT_DOUBLE_EQ(percentile_band(&values).high, 19.75);
}

TEST(Bootstrap, percentiles_leave_out_what_is_no_number) {
  std::vector<double> values = {kNan, 20, kNan, 10, kNan};
  EXPECT_DOUBLE_EQ(percentile_band(&values).low, 10.25);
  values = {kNan, kNan};
  EXPECT_TRUE(std::isnan(percentile_band(&values).low));
  EXPECT_TRUE(std::isnan(percentile_band(&values).high));
  values = {};
  EXPECT_TRUE(std::isnan(percentile_band(&values).low));
}

// Horizons are infinite where nothing flips.
TEST(Bootstrap, percentiles_take_infinities) {
  std::vector<double> values = {kInf, kInf, 5};
  EXPECT_EQ(percentile_band(&values).low, kInf);  // between 5 and infinity
  EXPECT_EQ(percentile_band(&values).high, kInf);
  values = {kInf, 5};
  EXPECT_EQ(percentile_band(&values).low, kInf);
  EXPECT_EQ(percentile_band(&values).high, kInf);
  values.assign(100, kInf);
  std::fill_n(values.begin(), 50, 2.0);
  EXPECT_EQ(percentile_band(&values).low, 2);
  EXPECT_EQ(percentile_band(&values).high, kInf);
}

TEST(Bootstrap, band_of_a_mean_against_sorted_resamples) {
  const std::array values = {3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0};
  const BootstrapOptions options = {.resamples = 41, .seed = 11};
  std::vector<double> means(41);
  for (uint64_t i = 0; i < 41; ++i) means[i] = mean_under(resample_weights(8, options, i), values);
  std::sort(means.begin(), means.end());
  const Band band = bootstrap_band(8, options, [&](Weights weights) { return mean_under(weights, values); });
  EXPECT_EQ(band.low, means[1]);
  EXPECT_EQ(band.high, means[39]);
  EXPECT_LT(band.low, band.high);
}

// Of many clusters the mean is nearly normal: mean ± 1.96 deviations / √n.
TEST(Bootstrap, band_of_a_mean_is_as_wide_as_theory_has_it) {
  std::vector<double> values(400);
  std::iota(values.begin(), values.end(), 0.0);
  const double deviation = std::sqrt((400.0 * 400 - 1) / 12);  // of 0 … n - 1
  const Band band = bootstrap_band(400, {.resamples = 4000}, [&](Weights w) { return mean_under(w, values); });
  const double half = 1.96 * deviation / std::sqrt(400);
  EXPECT_NEAR(band.low, 199.5 - half, 0.1 * half);
  EXPECT_NEAR(band.high, 199.5 + half, 0.1 * half);
}

TEST(Bootstrap, no_band_without_clusters_to_draw_or_resamples) {
  int calls = 0;
  const auto statistic = [&](Weights weights) {
    ++calls;
    for (const uint32_t weight : weights) EXPECT_EQ(weight, 1U);
    return 10.0 + static_cast<double>(weights.size());
  };
  EXPECT_EQ(bootstrap_band(0, {}, statistic).low, 10);
  EXPECT_EQ(bootstrap_band(1, {}, statistic).high, 11);
  const Band band = bootstrap_band(5, {.resamples = 0}, statistic);
  EXPECT_EQ(band.low, 15);
  EXPECT_EQ(band.high, 15);
  EXPECT_EQ(calls, 3);
}

// More values than are kept at once: computed in blocks, and each is what it is alone.
TEST(Bootstrap, many_statistics_together_are_what_each_is_alone) {
  constexpr uint64_t kCount = 200, kClusters = 3;
  for (const uint64_t resamples : {100U, 100'000U}) {
    const BootstrapOptions options = {.resamples = resamples, .seed = 5};
    uint64_t calls = 0;
    const std::vector<Band> bands =
        bootstrap_bands(kClusters, options, kCount, [&](Weights weights, std::span<double> values) {
          ++calls;
          for (size_t i = 0; i < values.size(); ++i) {
            values[i] = weights[i % 3] + static_cast<double>(i);
          }
        });
    EXPECT_EQ(calls, resamples * (resamples == 100 ? 1 : 2));
    ASSERT_EQ(bands.size(), kCount);
    for (size_t i = 0; i < kCount; ++i) {
      const Band zero = bands[i % 3];
      EXPECT_NEAR(bands[i].low - zero.low, static_cast<double>(i - i % 3), 1e-12) << i;
      EXPECT_NEAR(bands[i].high - zero.high, static_cast<double>(i - i % 3), 1e-12) << i;
    }
    const Band alone = bootstrap_band(kClusters, options, [](Weights weights) { return weights[2] + 197.0; });
    EXPECT_EQ(bands[197].low, alone.low);
    EXPECT_EQ(bands[197].high, alone.high);
  }
  EXPECT_TRUE(bootstrap_bands(5, {}, 0, [](Weights, std::span<double>) {}).empty());
}

TEST(Bootstrap, clusters_are_numbered_as_they_appear) {
  std::vector<uint64_t> clusters = {7, 7, 0, uint64_t{1} << 63, 0, 7};
  EXPECT_EQ(number_clusters(clusters), 3U);
  EXPECT_EQ(clusters, (std::vector<uint64_t>{0, 0, 1, 2, 1, 0}));
  EXPECT_EQ(number_clusters({}), 0U);
}

}  // namespace
}  // namespace nibble
