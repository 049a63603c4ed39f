#include "nibble/numerics/codec/e2m1.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "nibble/numerics/codec/nearest_for_test.h"
#include "nibble/testing/golden.h"

namespace nibble {
namespace {

using testing::golden_micro;
using testing::golden_number;

constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

TEST(E2m1, DecodesTheGoldenTable) {
  const Json& table = golden_micro()["tables"]["e2m1"];
  ASSERT_EQ(table.size(), 16u);
  for (uint8_t code = 0; code < 16; ++code) {
    const auto expected = static_cast<float>(golden_number(table[code]));
    EXPECT_EQ(float_bits(e2m1_decode(code)), float_bits(expected)) << int{code};
  }
}

TEST(E2m1, EncodesTheGoldenValuesInEveryVariant) {
  for (const Json& row : golden_micro()["encode_e2m1"]) {
    const auto x = static_cast<float>(golden_number(row["x"]));
    EXPECT_EQ(e2m1_encode(x, ZeroSign::kKeepSign), row["rne_keep_sign"].get<int>()) << x;
    EXPECT_EQ(e2m1_encode(x, ZeroSign::kNegativeIfNegative), row["rne_sign_if_lt0"].get<int>()) << x;
    EXPECT_EQ(e2m1_encode_ties_down(x, ZeroSign::kZeroIsNegative), row["half_toward_zero_zero_is_8"].get<int>()) << x;
    EXPECT_EQ(e2m1_encode_ties_down(x, ZeroSign::kCanonical), row["ggml_first_nearest"].get<int>()) << x;
  }
}

TEST(E2m1, RoundsToTheNearestWithTiesToEven) {
  for (const float a : interesting_magnitudes(kValues, -6, 5, 1)) {
    const uint32_t expected = nearest_even_code(a, kValues);
    ASSERT_EQ(e2m1_magnitude(a), expected) << a;
    ASSERT_EQ(e2m1_magnitude(-a), expected) << a;
    ASSERT_EQ(e2m1_encode(-a), expected == 0 ? 0u : expected + 8) << a;
  }
}

TEST(E2m1, EncodeInvertsDecodeForEveryCode) {
  for (uint8_t code = 0; code < 16; ++code) {
    EXPECT_EQ(e2m1_encode(e2m1_decode(code), ZeroSign::kKeepSign), code);
    EXPECT_EQ(e2m1_encode(e2m1_decode(code)), code == 8 ? 0 : code);
  }
}

TEST(E2m1, CanonicalEncodingNeverGivesMinusZero) {
  for (const float x : {-0.0f, -0.25f, -0x1p-149f, -0x1p-126f, previous_float(0.25f) * -1}) {
    EXPECT_EQ(e2m1_encode(x), 0) << x;
    EXPECT_EQ(e2m1_encode(x, ZeroSign::kNegativeIfNegative), x == 0 ? 0 : 8) << x;
    EXPECT_EQ(e2m1_encode(x, ZeroSign::kZeroIsNegative), 8) << x;
  }
  EXPECT_EQ(e2m1_encode(0.0f, ZeroSign::kZeroIsNegative), 8);
  EXPECT_EQ(e2m1_encode(0.1f, ZeroSign::kZeroIsNegative), 0);
}

TEST(E2m1, SaturatesAtSix) {
  EXPECT_EQ(e2m1_encode(INFINITY), 7);
  EXPECT_EQ(e2m1_encode(-kFloatMax), 15);
  EXPECT_EQ(e2m1_encode(NAN), 7);
}

TEST(E2m1, IsUsableInConstantExpressions) {
  static_assert(e2m1_encode(2.5f) == 4);
  static_assert(e2m1_decode(7) == 6.0f);
}

}  // namespace
}  // namespace nibble
