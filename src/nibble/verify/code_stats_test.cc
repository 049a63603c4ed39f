#include "nibble/verify/code_stats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "nibble/base/rng.h"
#include "nibble/numerics/encoded.h"

namespace nibble {
namespace {

std::vector<std::byte> random_bytes(uint64_t count, uint64_t seed) {
  std::vector<std::byte> bytes(count);
  for (uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(random_bits(seed, i));
  return bytes;
}

TEST(CodeStats, CountsEveryByteAtEveryLength) {
  for (const uint64_t length : {0u, 1u, 7u, 8u, 9u, 255u, 4096u, 5001u}) {
    const auto bytes = random_bytes(length, length);
    ByteCounts counts{};
    count_bytes(bytes, &counts);
    ByteCounts expected{};
    for (const std::byte b : bytes) ++expected[static_cast<uint8_t>(b)];
    EXPECT_EQ(counts, expected) << length;
  }
}

TEST(CodeStats, ShapesOfTheKnownElements) {
  EXPECT_EQ(code_shape(parse_format("mxfp4")), CodeShape::kSignMagnitude);
  EXPECT_EQ(code_shape(parse_format("int4-g32")), CodeShape::kOffset);
  EXPECT_EQ(code_shape(parse_format("int4-g32-asym")), CodeShape::kOffset);
  EXPECT_EQ(code_shape(parse_format("fp8-block")), CodeShape::kSignMagnitude);
  EXPECT_EQ(code_shape(parse_format("int8-channel")), CodeShape::kTwosComplement);
}

TEST(CodeStats, ValuesAreThoseOfTheDecoder) {
  const auto e2m1 = code_values(parse_format("nvfp4"));
  ASSERT_EQ(e2m1.size(), 16u);
  EXPECT_EQ(e2m1[7], 6.0f);
  EXPECT_EQ(e2m1[9], -0.5f);
  const auto int4 = code_values(parse_format("int4-g32-asym"));
  EXPECT_EQ(int4[0], -8.0f);
  EXPECT_EQ(int4[15], 7.0f);
  const auto e4m3 = code_values(parse_format("mxfp8"));
  ASSERT_EQ(e4m3.size(), 256u);
  EXPECT_EQ(e4m3[0x7E], 448.0f);
  EXPECT_TRUE(std::isnan(e4m3[0x7F]));
}

// One code after the other, as the definition says.
std::vector<uint8_t> slow_maxima(const Format& format, uint64_t cols, const std::byte* row) {
  const uint64_t bits = element_bits(format.element);
  const uint64_t block = format.block_cols == 0 ? cols : format.block_cols;
  std::vector<uint8_t> maxima((cols + block - 1) / block);
  for (uint64_t c = 0; c < cols; ++c) {
    const auto byte = static_cast<uint8_t>(row[c * bits / 8]);
    const auto code = static_cast<uint8_t>(bits == 8 ? byte : (c % 2 == 0 ? byte & 15 : byte >> 4));
    maxima[c / block] = std::max(maxima[c / block], code_magnitude(code_shape(format), bits, code));
  }
  return maxima;
}

TEST(CodeStats, BlockMaximaOfAllFormatsAndOddWidths) {
  for (const char* name : {"mxfp4", "nvfp4", "int4-g16", "int4-g128", "int4-channel", "mxfp8", "fp8-block",
                           "fp8-channel", "int8-channel"}) {
    const Format format = parse_format(name);
    for (const uint64_t cols : {1u, 2u, 15u, 16u, 17u, 33u, 64u, 96u, 128u, 130u, 384u, 1000u}) {
      const uint64_t bytes = format.code_row_bytes(cols);
      const auto row = random_bytes(bytes, cols);
      BlockMaxima maxima(format, cols);
      std::vector<uint8_t> found(maxima.blocks());
      maxima.row(row.data(), found.data());
      EXPECT_EQ(found, slow_maxima(format, cols, row.data())) << name << " " << cols;
    }
  }
}

template <typename Number>
std::vector<std::byte> bytes_of(const std::vector<Number>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(Number));
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TEST(DenseSums, AgreesWithASlowSumOverEveryType) {
  for (const uint64_t count : {0u, 1u, 1023u, 1024u, 1025u, 5000u}) {
    std::vector<uint16_t> bf16;
    std::vector<float> f32;
    std::vector<double> f64;
    double squares = 0;
    double amax = 0;
    uint64_t zeros = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const float exact = i % 7 == 0 ? 0.0f : static_cast<float>(random_normal(3, i));
      const auto bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(exact) >> 16);
      const auto value = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
      bf16.push_back(bits);
      f32.push_back(value);
      f64.push_back(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
      amax = std::max(amax, static_cast<double>(std::fabs(value)));
      zeros += value == 0 ? 1 : 0;
    }
    for (const auto& sums : {dense_sums(bytes_of(bf16), Element::kBF16), dense_sums(bytes_of(f32), Element::kF32),
                             dense_sums(bytes_of(f64), Element::kF64)}) {
      EXPECT_EQ(sums.elements, count);
      EXPECT_EQ(sums.zeros, zeros);
      EXPECT_EQ(sums.amax, amax);
      EXPECT_NEAR(sums.sum_squares, squares, 1e-9 * squares);
      EXPECT_FALSE(sums.first_bad.has_value());
    }
  }
}

TEST(DenseSums, HalfPrecisionWithSubnormals) {
  const std::vector<uint16_t> halves = {0x3C00, 0xC000, 0x0001, 0x8000, 0x7BFF};  // 1, -2, 2^-24, -0, 65504
  const DenseSums sums = dense_sums(bytes_of(halves), Element::kF16);
  EXPECT_EQ(sums.zeros, 1u);
  EXPECT_EQ(sums.amax, 65504.0);
  EXPECT_EQ(sums.sum_squares, 5 + 0x1p-48 + 65504.0 * 65504.0);
}

TEST(DenseSums, FindsWhatIsNotFiniteAnywhere) {
  for (const uint64_t place : {0u, 5u, 1023u, 1500u, 2999u}) {
    std::vector<float> values(3000, 0.5f);
    values[place] = std::nanf("");
    values[2999] = place == 2999 ? values[place] : -HUGE_VALF;
    const DenseSums sums = dense_sums(bytes_of(values), Element::kF32);
    EXPECT_EQ(sums.nans, 1u);
    EXPECT_EQ(sums.infinities, place == 2999 ? 0u : 1u);
    EXPECT_EQ(sums.first_bad, place);
    EXPECT_EQ(sums.amax, 0.5);
  }
}

TEST(DenseSums, EightBitFloatsWithoutScales) {
  const std::vector<uint8_t> codes = {0x38, 0xB8, 0x00, 0x7F};  // 1, -1, 0, NaN
  const DenseSums sums = dense_sums(bytes_of(codes), Element::kE4M3);
  EXPECT_EQ(sums.nans, 1u);
  EXPECT_EQ(sums.first_bad, 3u);
  EXPECT_EQ(sums.zeros, 1u);
  EXPECT_EQ(sums.sum_squares, 2.0);
}

}  // namespace
}  // namespace nibble
