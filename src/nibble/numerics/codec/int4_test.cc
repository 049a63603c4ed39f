#include "nibble/numerics/codec/int4.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "nibble/base/rng.h"

namespace nibble {
namespace {

// nearbyint rounds to nearest even in the default mode.
int expected_int(float x, int low, int high) {
  return static_cast<int>(std::nearbyint(std::clamp(x, static_cast<float>(low), static_cast<float>(high))));
}

TEST(Int4, RoundsToTheNearestWithTiesToEvenAndClamps) {
  for (int half = -40; half <= 40; ++half) {
    const float centre = static_cast<float>(half) / 2;
    for (const float x : {centre, std::nextafterf(centre, INFINITY), std::nextafterf(centre, -INFINITY)}) {
      EXPECT_EQ(int4_encode(x), expected_int(x, -8, 7) + 8) << x;
      EXPECT_EQ(int4_encode(x, -7, 7), expected_int(x, -7, 7) + 8) << x;
    }
  }
  EXPECT_EQ(int4_encode(INFINITY), 15);
  EXPECT_EQ(int4_encode(-kFloatMax), 0);
}

TEST(Int4, RoundToIntIsExactOverTheWholeRange) {
  for (uint64_t i = 0; i < 200000; ++i) {
    const auto x = static_cast<float>((random_uniform(5, i) - 0.5) * 0x1p22);
    ASSERT_EQ(round_to_int(x, -0x1p22f, 0x1p22f), static_cast<int32_t>(std::nearbyint(x))) << x;
  }
}

TEST(Int4, CodesAreOffsetBinary) {
  for (uint8_t code = 0; code < 16; ++code) {
    EXPECT_EQ(int4_decode(code), int{code} - 8);
    EXPECT_EQ(int4_encode(static_cast<float>(int4_decode(code))), code);
    // Two's complement: the low four bits of the signed value.
    EXPECT_EQ(int4_twos_complement(code), (int{code} - 8) & 15);
  }
}

TEST(Int4, NibblesPackLowFirst) {
  EXPECT_EQ(pack_nibbles(0x3, 0xa), 0xa3);
  EXPECT_EQ(unpack_nibble(0xa3, false), 0x3);
  EXPECT_EQ(unpack_nibble(0xa3, true), 0xa);
}

}  // namespace
}  // namespace nibble
