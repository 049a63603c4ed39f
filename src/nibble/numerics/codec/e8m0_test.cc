#include "nibble/numerics/codec/e8m0.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "nibble/base/rng.h"
#include "nibble/testing/golden.h"

namespace nibble {
namespace {

TEST(E8m0, DecodesTheGoldenTable) {
  const Json& table = testing::golden_micro()["tables"]["e8m0_f32_bits"];
  ASSERT_EQ(table.size(), 256u);
  for (int code = 0; code < 256; ++code) {
    EXPECT_EQ(float_bits(e8m0_decode(static_cast<uint8_t>(code))),
              testing::golden_hex(table[static_cast<size_t>(code)]))
        << code;
  }
}

TEST(E8m0, ExponentsAreClampedToTheCodes) {
  for (int k = -140; k <= 140; ++k) {
    EXPECT_EQ(e8m0_of_exponent(k), std::min(std::max(k, -127), 127) + 127) << k;
  }
}

// ceil(log2(x)) by frexp, which is exact.
int ceil_log2(float x) {
  int exponent = 0;
  const float fraction = std::frexp(x, &exponent);
  return fraction == 0.5f ? exponent - 1 : exponent;
}

TEST(E8m0, RoundsUpToThePowerOfTwo) {
  for (int k = -149; k <= 127; ++k) {
    const float power = std::ldexp(1.0f, k);
    for (const float x : {power, std::nextafterf(power, INFINITY), std::nextafterf(power, 0.0f)}) {
      if (x == 0 || !std::isfinite(x)) continue;
      EXPECT_EQ(e8m0_round_up(x), std::min(std::max(ceil_log2(x), -127), 127) + 127) << x;
    }
  }
  for (uint64_t i = 0; i < 100000; ++i) {
    const float x = bits_float(static_cast<uint32_t>(random_bits(4, i) % 0x7f800000u));
    if (x == 0) continue;
    ASSERT_EQ(e8m0_round_up(x), std::min(std::max(ceil_log2(x), -127), 127) + 127) << x;
  }
  EXPECT_EQ(e8m0_round_up(0.0f), 0);
  EXPECT_EQ(e8m0_round_up(kFloatMax), 254);
}

TEST(E8m0, PowersOfTwoAreExact) {
  for (int k = -149; k <= 127; ++k) EXPECT_EQ(exp2_int(k), std::ldexp(1.0f, k)) << k;
}

}  // namespace
}  // namespace nibble
