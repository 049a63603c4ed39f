// Curves of lifelines and percentiles of numpy (tests/golden/certify/statistics.json, made by
// tools/make_certify_goldens.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/json.h"
#include "nibble/certify/statistics/curves.h"
#include "nibble/certify/statistics/horizon.h"

namespace nibble {
namespace {

const Json& golden() {
  static const Json kGolden = read_json(Path(NIBBLE_SOURCE_DIR) / "tests/golden/certify/statistics.json");
  return kGolden;
}

constexpr double kTolerance = 1e-12;  // lifelines multiplies by adding logarithms

std::vector<ChainEnd> ends_of(const Json& set) {
  std::vector<ChainEnd> ends(set.at("times").size());
  for (size_t i = 0; i < ends.size(); ++i) {
    ends[i] = {set.at("times")[i].get<uint64_t>(), static_cast<ChainEndKind>(set.at("kinds")[i].get<int>()),
               set.at("clusters")[i].get<uint64_t>()};
  }
  return ends;
}

void expect_curve(const Curve& curve, const Json& set, const std::string& name) {
  ASSERT_EQ(curve.size(), set.at("points").size());
  const Json* band = json_member(set, "band");
  for (size_t i = 0; i < curve.size(); ++i) {
    EXPECT_EQ(curve[i].time, set.at("points")[i].get<uint64_t>());
    EXPECT_NEAR(curve[i].value, set.at(name)[i].get<double>(), kTolerance) << name << " at " << curve[i].time;
    if (band == nullptr) continue;
    EXPECT_NEAR(curve[i].low, band->at(name)[0][i].get<double>(), kTolerance) << name << " at " << curve[i].time;
    EXPECT_NEAR(curve[i].high, band->at(name)[1][i].get<double>(), kTolerance) << name << " at " << curve[i].time;
  }
}

TEST(CurvesGolden, percentiles_are_numpys) {
  ASSERT_EQ(golden().at("percentiles").size(), 18U);
  for (const Json& one : golden().at("percentiles")) {
    auto values = one.at("values").get<std::vector<double>>();
    const Band band = percentile_band(&values);
    EXPECT_DOUBLE_EQ(band.low, one.at("band")[0].get<double>()) << values.size();
    EXPECT_DOUBLE_EQ(band.high, one.at("band")[1].get<double>()) << values.size();
  }
}

TEST(CurvesGolden, curves_are_those_of_lifelines) {
  ASSERT_EQ(golden().at("sets").size(), 11U);
  uint64_t bands = 0;
  for (const Json& set : golden().at("sets")) {
    SCOPED_TRACE(set.at("name").get<std::string>());
    BootstrapOptions options = {.resamples = 0};
    if (const Json* band = json_member(set, "band")) {
      options = {band->at("resamples").get<uint64_t>(), band->at("seed").get<uint64_t>()};
      ++bands;
    }
    const std::vector<ChainEnd> ends = ends_of(set);
    expect_curve(divergence_incidence(ends, options), set, "incidence");
    const Curve survival = agreement_survival(ends, options);
    expect_curve(survival, set, "survival");
    EXPECT_EQ(measured_horizon(survival).value_or(0),
              json_member(set, "median") ? set.at("median").get<uint64_t>() : 0);
  }
  EXPECT_EQ(bands, 8U);
}

}  // namespace
}  // namespace nibble
