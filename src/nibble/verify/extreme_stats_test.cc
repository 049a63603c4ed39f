#include "nibble/verify/extreme_stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/numerics/decode.h"
#include "nibble/verify/scale_stats.h"

namespace nibble {
namespace {

TEST(OctaveCounts, TheFewBeyondAGap) {
  OctaveCounts counts;
  counts.add(0.01, 100);
  counts.add(0.5, 3);
  EXPECT_EQ(counts.above().count, 0u);
  counts.add(1e30, 2);  // 2^99.7
  EXPECT_EQ(counts.above().count, 2u);
  EXPECT_EQ(counts.above().others, 103u);
  // From 0.5 to 1e30 there are 100.7 octaves; steps of eight lose up to two of them.
  EXPECT_GE(counts.above().octaves, 100 - 16);
  EXPECT_LE(counts.above().octaves, 100);
  EXPECT_EQ(counts.below().count, 103u);
  counts.add(0);
  counts.add(-1);
  counts.add(INFINITY);
  counts.add(NAN);
  EXPECT_EQ(counts.above().others, 103u);
}

TEST(OctaveCounts, AtTheEndsOfFloat32) {
  OctaveCounts counts;
  counts.add(0x1p-149);
  counts.add(0x1.fffffep127);
  EXPECT_EQ(counts.above().count, 1u);
  EXPECT_EQ(counts.below().count, 1u);
}

TEST(OctaveCounts, ARangeHasNoGap) {
  OctaveCounts counts;
  counts.add_range(1e-3, 1e3, 50);
  EXPECT_EQ(counts.above().count, 0u);
  OctaveCounts high;
  high.add(1e9, 1);  // 2^20 above
  counts.merge(high);
  EXPECT_EQ(counts.above().count, 0u);
  high.add(1e20, 1);
  counts.merge(high);
  EXPECT_EQ(counts.above().count, 1u);
}

// Against decoding everything, over scales around the limit.
TEST(Overflows, AreWhatDecodesToNothingThat16BitsHold) {
  for (const char* format : {"mxfp4", "int4-g32", "int4-g32-asym", "fp8-block", "nvfp4"}) {
    EncodedMatrix matrix = EncodedMatrix::make(parse_format(format), 3, 64);
    if (matrix.format.two_level) matrix.tensor_scale = {SecondLevel::kMultiply, 0x1p119f};
    for (size_t i = 0; i < matrix.codes.size(); ++i) matrix.codes[i] = static_cast<std::byte>(i * 37 % 0x70);
    for (size_t i = 0; i < matrix.zeros.size(); ++i) matrix.zeros[i] = static_cast<uint8_t>(i % 16);
    const uint64_t size = matrix.format.scale_bytes();
    for (uint64_t s = 0; s < matrix.scales.size() / size; ++s) {
      const float wide = std::ldexp(1.0f, 122 + static_cast<int>(s % 6));
      uint32_t bits = 0;
      std::memcpy(&bits, &wide, 4);
      if (size == 2) bits >>= 16;                                                     // BF16
      if (size == 1) bits = static_cast<uint32_t>(249 + s % 6);                       // E8M0
      if (matrix.format.two_level) bits = static_cast<uint32_t>(0x38 + 8 * (s % 8));  // E4M3: 1, 2, 4 …
      std::memcpy(matrix.scales.data() + s * size, &bits, size);
    }
    std::vector<float> values(3 * 64);
    decode(matrix, values);
    uint64_t expected = 0, first = 0;
    for (size_t i = values.size(); i-- > 0;) {
      if (std::fabs(values[i]) < 0x1.FFp127f) continue;
      ++expected;
      first = i;
    }
    ASSERT_GT(expected, 0u) << format;
    ASSERT_LT(expected, values.size()) << format;
    ExtremeStats stats;
    add_overflows(matrix, 700, &stats);
    EXPECT_EQ(stats.overflows, expected) << format;
    EXPECT_EQ(stats.first_overflow, 700 + first) << format;
  }
}

}  // namespace
}  // namespace nibble
