// The codecs against the conversions of ml_dtypes and NumPy (tests/golden/numerics/ml_dtypes_*): float32 to code, round
// to nearest even, without saturation.
#include <gtest/gtest.h>

#include <cstring>

#include "nibble/numerics/codec/bf16.h"
#include "nibble/numerics/codec/e2m1.h"
#include "nibble/numerics/codec/e4m3.h"
#include "nibble/numerics/codec/e5m2.h"
#include "nibble/numerics/codec/e8m0.h"
#include "nibble/numerics/codec/f16.h"
#include "nibble/testing/golden.h"

namespace nibble {
namespace {

template <typename Code>
struct Conversion {
  float x;
  Code code;
};

template <typename Code>
std::vector<Conversion<Code>> conversions(const char* name) {
  const testing::GoldenFile file(std::string("numerics/ml_dtypes_") + name + ".safetensors");
  const testing::GoldenTensor& x = file.at("x");
  const testing::GoldenTensor& codes = file.at("codes");
  std::vector<Conversion<Code>> rows(x.elements());
  EXPECT_GT(rows.size(), 1000u);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(&rows[i].x, x.bytes.data() + 4 * i, 4);
    std::memcpy(&rows[i].code, codes.bytes.data() + sizeof(Code) * i, sizeof(Code));
  }
  return rows;
}

bool is_nan(float x) { return magnitude_bits(x) > kFloatInf; }

TEST(MlDtypes, E2m1) {
  // Its NaNs become -0 there and have no code here.
  for (const auto& [x, code] : conversions<uint8_t>("e2m1")) {
    if (is_nan(x)) continue;
    ASSERT_EQ(e2m1_encode(x, ZeroSign::kKeepSign), code) << x;
  }
}

TEST(MlDtypes, E4m3) {
  for (const auto& [x, code] : conversions<uint8_t>("e4m3fn")) {
    ASSERT_EQ(e4m3_encode(x, ZeroSign::kKeepSign, Overflow::kSpecial), code) << x;
  }
}

TEST(MlDtypes, E5m2) {
  for (const auto& [x, code] : conversions<uint8_t>("e5m2")) {
    ASSERT_EQ(e5m2_encode(x, Overflow::kSpecial), code) << x;
  }
}

TEST(MlDtypes, Bf16AndF16) {
  for (const auto& [x, code] : conversions<uint16_t>("bf16")) {
    if (is_nan(x)) continue;
    ASSERT_EQ(bf16_encode(x), code) << x;
  }
  for (const auto& [x, code] : conversions<uint16_t>("f16")) {
    if (is_nan(x)) continue;
    ASSERT_EQ(f16_encode(x), code) << x;
  }
}

// ml_dtypes rounds to the nearest power of two, scales here round up: powers of two agree.
TEST(MlDtypes, E8m0OfPowersOfTwo) {
  int powers = 0;
  for (const auto& [x, code] : conversions<uint8_t>("e8m0")) {
    const bool power = x > 0 && (x >= 0x1p-126f ? (float_bits(x) & 0x7fffffu) == 0 : float_bits(x) == 0x400000u);
    if (!power || !is_finite(x)) continue;
    ++powers;
    ASSERT_EQ(e8m0_round_up(x), code) << x;
    ASSERT_EQ(e8m0_decode(code), x);
  }
  EXPECT_GE(powers, 255);
}

}  // namespace
}  // namespace nibble
