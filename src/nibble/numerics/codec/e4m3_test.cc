#include "nibble/numerics/codec/e4m3.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "nibble/numerics/codec/e5m2.h"
#include "nibble/numerics/codec/nearest_for_test.h"
#include "nibble/testing/golden.h"

namespace nibble {
namespace {

using testing::golden_hex;
using testing::golden_micro;
using testing::golden_number;

void expect_same_float(float actual, float expected, int code) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << code;
  } else {
    EXPECT_EQ(float_bits(actual), float_bits(expected)) << code;
  }
}

// The finite magnitudes of the golden table, ascending.
std::vector<double> positive_values(const char* table) {
  std::vector<double> values;
  for (const Json& value : golden_micro()["tables"][table]) {
    const double x = golden_number(value);
    if (!std::isfinite(x)) break;
    values.push_back(x);
  }
  return values;
}

TEST(E4m3, DecodesTheGoldenTable) {
  const Json& table = golden_micro()["tables"]["e4m3fn"];
  ASSERT_EQ(table.size(), 256u);
  for (int code = 0; code < 256; ++code) {
    expect_same_float(e4m3_decode(static_cast<uint8_t>(code)),
                      static_cast<float>(golden_number(table[static_cast<size_t>(code)])), code);
  }
}

TEST(E4m3, EncodesTheGoldenValuesBothWays) {
  for (const Json& row : golden_micro()["encode_e4m3"]) {
    const auto x = static_cast<float>(golden_number(row["x"]));
    EXPECT_EQ(e4m3_encode(x), golden_hex(row["saturating"])) << x;
    EXPECT_EQ(e4m3_encode(x, ZeroSign::kKeepSign, Overflow::kSpecial), golden_hex(row["nonsaturating"])) << x;
  }
}

TEST(E4m3, RoundsToTheNearestWithTiesToEven) {
  const std::vector<double> values = positive_values("e4m3fn");
  ASSERT_EQ(values.size(), 127u);
  for (const float a : interesting_magnitudes(values, -13, 10, 2)) {
    const uint32_t expected = nearest_even_code(a, values);
    ASSERT_EQ(e4m3_magnitude(a), expected) << a;
    ASSERT_EQ(e4m3_encode(-a), expected | 0x80u) << a;
    ASSERT_EQ(e4m3_encode(-a, ZeroSign::kCanonical), expected == 0 ? 0u : expected | 0x80u) << a;
  }
}

TEST(E4m3, EncodeInvertsDecodeForEveryCode) {
  for (int code = 0; code < 256; ++code) {
    EXPECT_EQ(e4m3_encode(e4m3_decode(static_cast<uint8_t>(code))), code);
  }
}

TEST(E4m3, EncodesEveryBfloat16Pattern) {
  const std::vector<double> values = positive_values("e4m3fn");
  for (uint32_t high = 0; high < 0x7f80; ++high) {
    const float x = bits_float(high << 16);
    ASSERT_EQ(e4m3_magnitude(x), nearest_even_code(x, values)) << x;
  }
  EXPECT_EQ(e4m3_encode(NAN), kE4m3Nan);
  EXPECT_EQ(e4m3_encode(-INFINITY), 0xfe);
}

TEST(E5m2, DecodesTheGoldenTable) {
  const Json& table = golden_micro()["tables"]["e5m2"];
  ASSERT_EQ(table.size(), 256u);
  for (int code = 0; code < 256; ++code) {
    expect_same_float(e5m2_decode(static_cast<uint8_t>(code)),
                      static_cast<float>(golden_number(table[static_cast<size_t>(code)])), code);
  }
}

TEST(E5m2, EncodesTheGoldenValuesBothWays) {
  for (const Json& row : golden_micro()["encode_e5m2"]) {
    const auto x = static_cast<float>(golden_number(row["x"]));
    EXPECT_EQ(e5m2_encode(x), golden_hex(row["saturating"])) << x;
    EXPECT_EQ(e5m2_encode(x, Overflow::kSpecial), golden_hex(row["nonsaturating"])) << x;
  }
}

TEST(E5m2, RoundsToTheNearestWithTiesToEven) {
  const std::vector<double> values = positive_values("e5m2");
  ASSERT_EQ(values.size(), 0x7cu);
  for (const float a : interesting_magnitudes(values, -20, 17, 3)) {
    const uint32_t expected = nearest_even_code(a, values);
    ASSERT_EQ(e5m2_encode(a), expected) << a;
    ASSERT_EQ(e5m2_encode(-a), expected | 0x80u) << a;
  }
  for (int code = 0; code < 256; ++code) {
    const float value = e5m2_decode(static_cast<uint8_t>(code));
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(e5m2_encode(value), code);
  }
}

}  // namespace
}  // namespace nibble
