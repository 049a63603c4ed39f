#include "nibble/certify/statistics/curves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <vector>

#include "nibble/certify/statistics/ends_by_definition_test.h"
#include "nibble/certify/statistics/horizon.h"

namespace nibble {
namespace {

using Kind = ChainEndKind;
using Ends = std::vector<ChainEnd>;
constexpr Kind kDiverged = Kind::kDiverged, kEnded = Kind::kEnded, kCensored = Kind::kCensored;
constexpr BootstrapOptions kNoBands = {.resamples = 0};

std::vector<uint64_t> times(const Curve& curve) {
  std::vector<uint64_t> result;
  for (const CurvePoint& point : curve) result.push_back(point.time);
  return result;
}

std::vector<double> values(const Curve& curve) {
  std::vector<double> result;
  for (const CurvePoint& point : curve) result.push_back(point.value);
  return result;
}

using Times = std::vector<uint64_t>;
using Values = std::vector<double>;

TEST(Curves, shares_where_nothing_is_censored) {
  // Of ten: three diverge at 2, one at 5, two at 7; the others end at 2, 5, 6 and 9.
  const Ends ends = {{2, kDiverged}, {5, kEnded},    {2, kDiverged}, {9, kEnded},    {7, kDiverged},
                     {2, kEnded},    {5, kDiverged}, {6, kEnded},    {7, kDiverged}, {2, kDiverged}};
  const Curve incidence = divergence_incidence(ends, kNoBands);
  EXPECT_EQ(times(incidence), (Times{2, 5, 7, 9}));
  EXPECT_EQ(values(incidence), (Values{3.0 / 10, 4.0 / 10, 6.0 / 10, 6.0 / 10}));
}

TEST(Curves, half_is_half) {
  // Products of rounded factors miss it: 1 · (1 - 1/6) (1 - 1/5) (1 - 1/4).
  const Ends ends = {{1, kDiverged}, {2, kDiverged}, {3, kDiverged}, {4, kCensored}, {4, kCensored}, {4, kCensored}};
  const Curve survival = agreement_survival(ends, kNoBands);
  EXPECT_EQ(values(survival), (Values{5.0 / 6, 4.0 / 6, 0.5, 0.5}));
  EXPECT_EQ(measured_horizon(survival), 3U);
}

TEST(Curves, constant_hazard_halves) {
  Ends ends;
  for (uint64_t t = 1; t <= 10; ++t) ends.insert(ends.end(), size_t{1} << (10 - t), ChainEnd{t, kDiverged});
  ends.push_back({10, kCensored});
  const Curve survival = agreement_survival(ends, kNoBands), incidence = divergence_incidence(ends, kNoBands);
  ASSERT_EQ(survival.size(), 10U);
  ASSERT_EQ(incidence.size(), 10U);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(survival[i].value, std::ldexp(1.0, -static_cast<int>(i + 1)));
    EXPECT_EQ(incidence[i].value, 1 - survival[i].value);
  }
  EXPECT_EQ(measured_horizon(survival), 1U);
  for (const HazardBin& bin : divergence_hazard(ends, kNoBands)) EXPECT_EQ(bin.value, 0.5) << bin.from;
}

TEST(Curves, one_chain) {
  const auto both = [](Kind kind) {
    const Ends ends = {{7, kind}};
    const Curve incidence = divergence_incidence(ends, {}), survival = agreement_survival(ends, {});
    EXPECT_EQ(times(incidence), Times{7});
    EXPECT_EQ(times(survival), Times{7});
    EXPECT_EQ(incidence[0].low, incidence[0].value);
    EXPECT_EQ(incidence[0].high, incidence[0].value);
    return std::array{incidence[0].value, survival[0].value};
  };
  EXPECT_EQ(both(kDiverged), (std::array{1.0, 0.0}));
  EXPECT_EQ(both(kEnded), (std::array{0.0, 1.0}));
  EXPECT_EQ(both(kCensored), (std::array{0.0, 1.0}));
}

TEST(Curves, nothing_diverges) {
  for (const Kind kind : {kEnded, kCensored}) {
    const Ends ends = {{3, kind, 0}, {5, kind, 1}, {4, kind, 2}};
    const Curve incidence = divergence_incidence(ends, {}), survival = agreement_survival(ends, {});
    EXPECT_EQ(times(incidence), Times{5});
    EXPECT_EQ(values(incidence), Values{0});
    EXPECT_EQ(incidence[0].high, 0);
    EXPECT_EQ(times(survival), Times{5});
    EXPECT_EQ(values(survival), Values{1});
    EXPECT_EQ(survival[0].low, 1);
    EXPECT_EQ(measured_horizon(survival), std::nullopt);
  }
}

TEST(Curves, no_chains) {
  EXPECT_TRUE(divergence_incidence({}, {}).empty());
  EXPECT_TRUE(agreement_survival({}, {}).empty());
  EXPECT_TRUE(divergence_hazard({}, {}).empty());
}

// At 2 a chain of each kind leaves, whatever their order: four are at risk, the censored one too; then one, with half
// of all still running.
TEST(Curves, events_come_before_censorings_at_equal_times) {
  Ends ends = {{2, kCensored}, {3, kDiverged}, {2, kEnded}, {2, kDiverged}};
  std::sort(ends.begin(), ends.end(), [](const ChainEnd& a, const ChainEnd& b) { return a.kind < b.kind; });
  for (int turn = 0; turn < 4; ++turn) {
    EXPECT_EQ(values(divergence_incidence(ends, kNoBands)), (Values{0.25, 0.75}));
    EXPECT_EQ(values(agreement_survival(ends, kNoBands)), (Values{0.75, 0}));
    std::rotate(ends.begin(), ends.begin() + 1, ends.end());
  }
}

// An answer that ends is no longer at risk of diverging: counted as censored, it would have gone on like the others.
TEST(Curves, ends_compete_with_divergence) {
  const Ends ends = {{1, kEnded}, {1, kEnded}, {2, kDiverged}, {2, kEnded}};
  EXPECT_EQ(divergence_incidence(ends, kNoBands).back().value, 0.25);
  EXPECT_EQ(agreement_survival(ends, kNoBands).back().value, 0.5);
}

TEST(Curves, random_ends_against_the_definitions) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Ends ends = by_definition::random_ends(seed, 1 + seed * 3, 10, 1 + seed % 13);
    for (const CurvePoint& point : divergence_incidence(ends, kNoBands)) {
      EXPECT_NEAR(point.value, by_definition::incidence(ends, point.time), 1e-13) << seed;
    }
    for (const CurvePoint& point : agreement_survival(ends, kNoBands)) {
      EXPECT_NEAR(point.value, by_definition::survival(ends, point.time), 1e-13) << seed;
    }
    for (const HazardBin& bin : divergence_hazard(ends, kNoBands)) {
      EXPECT_DOUBLE_EQ(bin.value, by_definition::hazard(ends, bin.from, bin.to)) << seed;
      EXPECT_DOUBLE_EQ(bin.value * static_cast<double>(bin.choices), static_cast<double>(bin.divergences));
    }
  }
}

TEST(Curves, points_are_where_a_curve_changes) {
  const Ends ends = by_definition::random_ends(3, 60, 10, 40);
  Times expected;
  for (uint64_t t = 1; t <= 40; ++t) {
    if (by_definition::counts(ends, t).diverged > 0 || t == by_definition::last_time(ends)) expected.push_back(t);
  }
  EXPECT_EQ(times(divergence_incidence(ends, kNoBands)), expected);
  EXPECT_EQ(times(agreement_survival(ends, kNoBands)), expected);
}

TEST(Curves, bins_of_hazard) {
  const auto edges = [](uint64_t last) {
    std::vector<std::array<uint64_t, 2>> result;
    for (const HazardBin& bin : divergence_hazard(Ends{{last, kEnded}}, kNoBands)) result.push_back({bin.from, bin.to});
    return result;
  };
  using Edges = std::vector<std::array<uint64_t, 2>>;
  EXPECT_EQ(edges(1), (Edges{{0, 1}}));
  EXPECT_EQ(edges(2), (Edges{{0, 1}, {1, 2}}));
  EXPECT_EQ(edges(3), (Edges{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(edges(9), (Edges{{0, 1}, {1, 2}, {2, 4}, {4, 8}, {8, 9}}));
  EXPECT_EQ(edges(32768).size(), 16U);
  // Chains of 1, 3, 4 and 7 choices, two of which diverge with their last one.
  const std::vector<HazardBin> bins =
      divergence_hazard(Ends{{1, kDiverged}, {3, kCensored}, {4, kDiverged}, {7, kEnded}}, kNoBands);
  ASSERT_EQ(bins.size(), 4U);
  const std::array<uint64_t, 4> choices = {4, 3, 5, 3}, divergences = {1, 0, 1, 0};
  for (size_t b = 0; b < 4; ++b) {
    EXPECT_EQ(bins[b].choices, choices[b]);
    EXPECT_EQ(bins[b].divergences, divergences[b]);
    EXPECT_EQ(bins[b].low, bins[b].value);  // no resamples
  }
}

// Bands against copies of the chains, curves from the definitions and sorted values.
class Bands : public ::testing::Test {
 protected:
  void expect(const Band& band, const std::function<double(std::span<const ChainEnd>)>& statistic) const {
    std::vector<double> drawn(options_.resamples);
    for (uint64_t i = 0; i < options_.resamples; ++i) {
      drawn[i] = statistic(by_definition::drawn(ends_, resample_weights(kClusters, options_, i)));
    }
    EXPECT_NEAR(band.low, by_definition::percentile(drawn, 2.5), 1e-13);
    EXPECT_NEAR(band.high, by_definition::percentile(drawn, 97.5), 1e-13);
  }
  static constexpr uint64_t kClusters = 7;
  const BootstrapOptions options_ = {.resamples = 60, .seed = 9};
  const Ends ends_ = by_definition::random_ends(17, 40, kClusters, 11);
};

TEST_F(Bands, of_incidence) {
  for (const CurvePoint& point : divergence_incidence(ends_, options_)) {
    expect({point.low, point.high}, [&](auto ends) { return by_definition::incidence(ends, point.time); });
  }
}

TEST_F(Bands, of_survival) {
  for (const CurvePoint& point : agreement_survival(ends_, options_)) {
    expect({point.low, point.high}, [&](auto ends) { return by_definition::survival(ends, point.time); });
    EXPECT_LE(point.low, point.high);
  }
}

TEST_F(Bands, of_hazard) {
  for (const HazardBin& bin : divergence_hazard(ends_, options_)) {
    expect({bin.low, bin.high}, [&](auto ends) { return by_definition::hazard(ends, bin.from, bin.to); });
  }
}

// The last bin has one cluster only: it is left out of resamples that miss it.
TEST_F(Bands, of_hazard_where_a_resample_has_no_choices) {
  const Ends ends = {{1, kDiverged, 0}, {1, kEnded, 1}, {2, kDiverged, 2}};
  const std::vector<HazardBin> bins = divergence_hazard(ends, options_);
  ASSERT_EQ(bins.size(), 2U);
  EXPECT_EQ(bins[1].low, 1);
  EXPECT_EQ(bins[1].high, 1);
  EXPECT_LT(bins[0].low, bins[0].high);
}

bool same_bands(const Curve& a, const Curve& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const CurvePoint& x, const CurvePoint& y) {
    return x.time == y.time && std::abs(x.value - y.value) < 1e-13 && std::abs(x.low - y.low) < 1e-13 &&
           std::abs(x.high - y.high) < 1e-13;
  });
}

TEST_F(Bands, do_not_depend_on_what_clusters_are_called) {
  Ends renamed = ends_;
  for (ChainEnd& end : renamed) end.cluster = 1000 - end.cluster * 100;
  EXPECT_TRUE(same_bands(divergence_incidence(ends_, options_), divergence_incidence(renamed, options_)));
}

// Copies of a chain in its own cluster say nothing that it did not say. Taken for chains of their own, they would.
TEST_F(Bands, clusters_are_never_split) {
  Ends one_each = by_definition::random_ends(23, 30, 30, 11), copied, split;
  for (const ChainEnd& end : one_each) {
    for (uint64_t copy = 0; copy < 4; ++copy) {
      copied.push_back(end);
      split.push_back({end.time, end.kind, 4 * end.cluster + copy});
    }
  }
  for (const auto& curve : {divergence_incidence, agreement_survival}) {
    const Curve single = curve(one_each, {}), together = curve(copied, {}), apart = curve(split, {});
    EXPECT_TRUE(same_bands(single, together));
    const CurvePoint &wide = together.back(), &narrow = apart.back();
    EXPECT_NEAR(narrow.value, wide.value, 1e-13);
    EXPECT_LT(narrow.high - narrow.low, 0.65 * (wide.high - wide.low));
  }
  for (const HazardBin& bin : divergence_hazard(copied, {})) {
    const HazardBin single = divergence_hazard(one_each, {})[static_cast<size_t>(std::bit_width(bin.from))];
    EXPECT_EQ(bin.choices, 4 * single.choices);
    EXPECT_EQ(bin.low, single.low);
    EXPECT_EQ(bin.high, single.high);
  }
}

}  // namespace
}  // namespace nibble
