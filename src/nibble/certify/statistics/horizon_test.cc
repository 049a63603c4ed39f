#include "nibble/certify/statistics/horizon.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using testing::thrown_error;
using testing::value_of;

TEST(Horizon, implied_by_the_rate_of_flips) {
  EXPECT_NEAR(implied_horizon(1, 100).tokens, 68.9676, 1e-4);
  EXPECT_EQ(implied_horizon(7, 700).tokens, implied_horizon(1, 100).tokens);
  EXPECT_DOUBLE_EQ(implied_horizon(1, 2).tokens, 1);  // ½ is left after one
  EXPECT_DOUBLE_EQ(implied_horizon(3, 4).tokens, 0.5);
  EXPECT_EQ(implied_horizon(5, 5).tokens, 0);
  EXPECT_FALSE(implied_horizon(1, 100).at_least);
  // (1 - f)^n½ is ½, and for rare flips n½ is ln 2 / f - ln 2 / 2.
  EXPECT_NEAR(std::pow(1 - 0.003, implied_horizon(3, 1000).tokens), 0.5, 1e-12);
  constexpr uint64_t kMany = 1'000'000'000'000'000;
  EXPECT_NEAR(implied_horizon(1, kMany).tokens / 1e15, std::log(2.0), 1e-12);
}

TEST(Horizon, without_flips_it_is_a_lower_bound) {
  const ImpliedHorizon bound = implied_horizon(0, 10000);
  EXPECT_TRUE(bound.at_least);
  EXPECT_NEAR(bound.tokens, 2313.78, 0.01);
  // A model with this horizon shows no flip in N tokens with probability 5 %.
  EXPECT_NEAR(std::pow(std::pow(0.5, 1 / bound.tokens), 10000), 0.05, 1e-12);
}

TEST(Horizon, refuses_what_is_no_rate) {
  EXPECT_EQ(thrown_error([] { implied_horizon(0, 0); }).message(), "a horizon needs scored tokens, and there are none");
  const Error error = thrown_error([] { implied_horizon(3, 2); });
  EXPECT_EQ(error.message(), "more flips than scored tokens");
  EXPECT_EQ(value_of(error, "flips"), "3");
  EXPECT_EQ(value_of(error, "tokens"), "2");
  EXPECT_EQ(error.ways_out().size(), 1U);
}

TEST(Horizon, measured_is_where_half_has_left) {
  const Curve curve = {{3, 0.75, 0, 1}, {8, 0.5, 0, 1}, {9, 0.25, 0, 1}};
  EXPECT_EQ(measured_horizon(curve), 8U);
  EXPECT_EQ(measured_horizon({{3, 0.75, 0, 1}, {8, 0.5 + 1e-15, 0, 1}}), 8U);
  EXPECT_EQ(measured_horizon({{3, 0.75, 0, 1}, {8, 0.5001, 0, 1}}), std::nullopt);
  EXPECT_EQ(measured_horizon({{1, 0, 0, 0}}), 1U);
  EXPECT_EQ(measured_horizon({}), std::nullopt);
}

}  // namespace
}  // namespace nibble
