#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "nibble/base/rng.h"
#include "nibble/numerics/codec/bf16.h"
#include "nibble/numerics/codec/f16.h"
#include "nibble/numerics/codec/nearest_for_test.h"
#include "nibble/testing/golden.h"

namespace nibble {
namespace {

TEST(Half, EncodesTheGoldenValues) {
  for (const Json& row : testing::golden_micro()["encode_bf16_f16"]) {
    const auto x = static_cast<float>(testing::golden_number(row["x"]));
    EXPECT_EQ(bf16_encode(x), testing::golden_hex(row["bf16"])) << x;
    EXPECT_EQ(f16_encode(x), testing::golden_hex(row["f16"])) << x;
  }
}

// Decoded value of any binary16 pattern from its definition.
double f16_value(uint32_t bits) {
  const int exponent = static_cast<int>((bits >> 10) & 31u);
  const double mantissa = bits & 0x3ffu;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
}

TEST(Half, EveryPatternDecodesAndComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float b = bf16_decode(half), f = f16_decode(half);
    if ((bits & 0x7f80u) != 0x7f80u || (bits & 0x7fu) == 0) {
      ASSERT_EQ(bf16_encode(b), bits);
    } else {
      ASSERT_TRUE(std::isnan(b) && std::isnan(bf16_decode(bf16_encode(b))));
    }
    if ((bits & 0x7c00u) != 0x7c00u) {
      ASSERT_EQ(static_cast<double>(f), f16_value(bits));
      ASSERT_EQ(f16_encode(f), bits);
    } else if ((bits & 0x3ffu) == 0) {
      ASSERT_TRUE(std::isinf(f));
      ASSERT_EQ(f16_encode(f), bits);
    } else {
      ASSERT_TRUE(std::isnan(f) && std::isnan(f16_decode(f16_encode(f))));
    }
  }
}

// Between two neighbouring patterns the midpoint goes to the even one, and one ulp decides otherwise.
template <typename Encode>
void expect_ties_to_even(uint32_t patterns, double (*value)(uint32_t), Encode encode) {
  for (uint32_t bits = 0; bits + 1 < patterns; ++bits) {
    const auto middle = static_cast<float>((value(bits) + value(bits + 1)) / 2);
    ASSERT_EQ(encode(middle), bits % 2 == 0 ? bits : bits + 1) << middle;
    ASSERT_EQ(encode(previous_float(middle)), bits) << middle;
    ASSERT_EQ(encode(next_float(middle)), bits + 1) << middle;
    ASSERT_EQ(encode(-middle), (bits % 2 == 0 ? bits : bits + 1) | 0x8000u) << middle;
  }
}

double bf16_value(uint32_t bits) { return bits_float(bits << 16); }

TEST(Half, MidpointsGoToTheEvenNeighbour) {
  expect_ties_to_even(0x7c00, f16_value, f16_encode);
  expect_ties_to_even(0x7f80, bf16_value, bf16_encode);
}

TEST(Half, OverflowBecomesInfinity) {
  EXPECT_EQ(f16_encode(65519.996f), 0x7bff);
  EXPECT_EQ(f16_encode(65520.0f), 0x7c00);
  EXPECT_EQ(f16_encode(-kFloatMax), 0xfc00);
  EXPECT_EQ(bf16_encode(kFloatMax), 0x7f80);
  EXPECT_EQ(bf16_encode(kBf16Max), 0x7f7f);
}

// Rounding a double to odd and then to the short type must equal rounding it once: compare with exact midpoints that a
// detour through a nearest float32 gets wrong.
TEST(Half, RoundingFloat64ThroughOddIsASingleRounding) {
  const double just_above_tie = 1.0 + 0x1p-8 + 0x1p-40;  // nearest float32 is the tie itself
  EXPECT_EQ(bf16_encode(static_cast<float>(just_above_tie)), 0x3f80);
  EXPECT_EQ(bf16_encode(double_to_float_odd(just_above_tie)), 0x3f81);
  const double just_below_tie = 1.0 + 3 * 0x1p-8 - 0x1p-40;
  EXPECT_EQ(bf16_encode(double_to_float_odd(just_below_tie)), 0x3f81);
  EXPECT_EQ(f16_encode(double_to_float_odd(0x1p-25 + 0x1p-70)), 1);  // just above half the smallest subnormal
  EXPECT_EQ(f16_encode(double_to_float_odd(0x1p-25)), 0);
}

TEST(Half, Float64RoundedToOddBracketsTheValue) {
  for (uint64_t i = 0; i < 200000; ++i) {
    const double x = bits_double(random_bits(6, i));
    if (!std::isfinite(x)) continue;
    const float odd = double_to_float_odd(x);
    const auto nearest = static_cast<float>(x);
    if (static_cast<double>(nearest) == x) {
      ASSERT_EQ(float_bits(odd), float_bits(nearest)) << x;
    } else if (std::abs(x) >= static_cast<double>(kFloatMax)) {
      ASSERT_EQ(std::abs(odd), kFloatMax) << x;
    } else {
      ASSERT_EQ(float_bits(odd) & 1u, 1u) << x;
      ASSERT_LE(std::abs(static_cast<double>(odd) - x),
                std::abs(static_cast<double>(next_float(std::abs(odd))) - std::abs(odd)))
          << x;
    }
  }
  EXPECT_TRUE(std::isnan(double_to_float_odd(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_EQ(double_to_float_odd(-std::numeric_limits<double>::infinity()), -INFINITY);
}

}  // namespace
}  // namespace nibble
