// Failures met in the field, as small exact inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nibble/numerics/quantize_for_test.h"

namespace nibble {
namespace {

float scale_at(const EncodedMatrix& matrix, uint64_t index) {
  return scale_value(matrix.format.scale, matrix.scales.data() + index * matrix.format.scale_bytes());
}

TEST(Cases, C09_fp8_zero_tile) {
  std::vector<float> values(256 * 256);
  values[0] = 1;
  for (const ScaleType scale : {ScaleType::kF32, ScaleType::kBF16}) {
    Format format = parse_format("fp8-block");
    format.scale = scale;
    const Quantized result = quantize(dense_matrix(values, 256, 256), format);
    const float expected = scale == ScaleType::kF32 ? 1.0f / 448.0f : bf16_round(1.0f / 448.0f);
    EXPECT_EQ(scale_at(result.matrix, 0), expected);
    EXPECT_EQ(code_of(result.matrix, 0, 0), 0x7e);
    for (uint64_t tile = 1; tile < 4; ++tile) {
      EXPECT_TRUE(std::isfinite(scale_at(result.matrix, tile)) && scale_at(result.matrix, tile) > 0);
    }
    for (size_t i = 1; i < result.matrix.codes.size(); ++i) ASSERT_EQ(result.matrix.codes[i], std::byte{0});
    const std::vector<float> decoded = result.values();
    EXPECT_EQ(std::accumulate(decoded.begin() + 1, decoded.end(), 0.0f), 0.0f);
  }
}

TEST(Cases, C09_zero_tiles_of_minus_zero_in_every_format) {
  const std::vector<float> values(128 * 128, -0.0f);
  for (const char* name :
       {"int4-g32", "int4-g32-asym", "mxfp4", "nvfp4", "mxfp8", "fp8-block", "fp8-channel", "fp8-tensor", "int8-g32"}) {
    for (const ScaleRule* rule : scale_rules()) {
      const Format format = parse_format(name);
      if (!rule->applies(format)) continue;
      const Quantized result = quantize(dense_matrix(values, 128, 128), format, rule->name);
      for (const float value : result.values()) ASSERT_EQ(float_bits(value), 0u) << name << rule->name;
      for (uint64_t i = 0; i * format.scale_bytes() < result.matrix.scales.size(); ++i) {
        ASSERT_TRUE(std::isfinite(scale_at(result.matrix, i)) && scale_at(result.matrix, i) > 0) << name << rule->name;
      }
      EXPECT_EQ(result.total().rel_rmse(), 0);
    }
  }
}

TEST(Cases, C11_nvfp4_block_scales_do_not_underflow) {
  std::vector<float> values(8 * 64);
  for (uint64_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(1e-4 * (2 * random_uniform(11, i) - 1));
  values[100] = 1e-4f;
  for (const char* rule : {"nv.two_level", "nv.ct", "nv.single"}) {
    for (const Element element : {Element::kF32, Element::kBF16}) {
      const Quantized result = quantize(dense_matrix(values, 8, 64, element), parse_format("nvfp4"), rule);
      EXPECT_EQ(*std::ranges::max_element(result.matrix.scales), std::byte{0x7e}) << rule;
      EXPECT_LT(result.total().rel_rmse(), 0.12) << rule;
    }
  }
  // Four-over-six keeps room above: its ordinary scales end at 256 = 0x78, 1.5 times that is 384 = 0x7C.
  const Quantized result = quantize(dense_matrix(values, 8, 64, Element::kF32), parse_format("nvfp4"), "nv.four_six");
  const std::byte largest = *std::ranges::max_element(result.matrix.scales);
  EXPECT_TRUE(largest >= std::byte{0x78} && largest <= std::byte{0x7c});
}

TEST(Cases, C11_single_level_is_kept_where_it_fits) {
  std::vector<float> values(16, 0.0f);
  values[0] = 6;
  const Quantized result = quantize(dense_matrix(values, 1, 16), parse_format("nvfp4"), "nv.single");
  EXPECT_EQ(result.matrix.tensor_scale, (TensorScale{SecondLevel::kMultiply, 1.0f}));
  EXPECT_EQ(result.matrix.scales[0], std::byte{0x38});
  EXPECT_EQ(code_of(result.matrix, 0, 0), 7);
}

TEST(Cases, C11_smallest_block_scale_decodes_exactly) {
  EncodedMatrix matrix = EncodedMatrix::make(parse_format("nvfp4"), 1, 16);
  for (std::byte& pair : matrix.codes) pair = std::byte{0x77};
  matrix.scales[0] = std::byte{0x01};
  for (const SecondLevel level : {SecondLevel::kMultiply, SecondLevel::kDivide}) {
    matrix.tensor_scale = {level, 1.0f};
    std::vector<float> values(16);
    decode(matrix, values);
    for (const float value : values) EXPECT_EQ(value, 0.01171875f);
  }
}

TEST(Cases, C58_scale_is_rounded_before_quantizing) {
  std::vector<float> values(128 * 128, 1.0f);
  values[77] = 500;
  const Quantized result =
      quantize(dense_matrix(values, 128, 128, Element::kF32), parse_format("fp8-block"), "fp8.ue8m0");
  EXPECT_EQ(scale_at(result.matrix, 0), 2.0f);
  EXPECT_EQ(result.values()[77], 512.0f);
}

// 64 tiles with maxima uniform in [100, 1000]: the round trip of every element of at least 2^-6 scale is within 2^-4,
// for every rule that stores a rounded scale.
TEST(Cases, C58_round_trip_stays_within_a_step) {
  std::vector<float> values(128 * 128 * 64);
  for (uint64_t tile = 0; tile < 64; ++tile) {
    const double amax = 100 + 900 * random_uniform(58, tile);
    for (uint64_t i = 0; i < 128 * 128; ++i) {
      const double u = 2 * random_uniform(59, tile * 16384 + i) - 1;
      values[(i / 128) * 128 * 64 + tile * 128 + i % 128] = static_cast<float>(i == 5 ? amax : amax * u);
    }
  }
  const DenseMatrix x = dense_matrix(values, 128, 128 * 64, Element::kF32);
  for (const auto& [rule, scale] : {std::pair{"fp8.ue8m0", ScaleType::kF32}, std::pair{"fp8.ue8m0", ScaleType::kE8M0},
                                    std::pair{"fp8.amax", ScaleType::kF32}, std::pair{"fp8.amax", ScaleType::kBF16}}) {
    Format format = parse_format("fp8-block");
    format.scale = scale;
    const Quantized result = quantize(x, format, rule);
    const std::vector<float> decoded = result.values();
    float smallest = 448, largest = 0;
    for (uint64_t tile = 0; tile < 64; ++tile) {
      const float tile_scale = scale_at(result.matrix, tile);
      float top = 0;
      for (uint64_t i = 0; i < 128 * 128; ++i) {
        const uint64_t at = (i / 128) * 128 * 64 + tile * 128 + i % 128;
        if (std::abs(values[at]) >= 0x1p-6f * tile_scale) {
          ASSERT_LE(std::abs(decoded[at] - values[at]), 0x1p-4f * std::abs(values[at])) << rule;
        }
        top = std::max(top, std::abs(decoded[at]) / tile_scale);
      }
      smallest = std::min(smallest, top);
      largest = std::max(largest, top);
    }
    // With powers of two the largest code of a tile spreads over (224, 448].
    if (std::string_view(rule) == "fp8.ue8m0") {
      EXPECT_GE(smallest, 224);
      EXPECT_LE(smallest, 256);
      EXPECT_EQ(largest, 448);
    }
  }
}

TEST(Cases, C85_two_int4_rules) {
  std::vector<float> values;
  values.reserve(32);
  for (int i = 0; i < 32; ++i) values.push_back(static_cast<float>(i % 15 - 7));
  Format format = parse_format("int4-g32");
  const Quantized seven = quantize(dense_matrix(values, 1, 32), format, "int4.amax7");
  EXPECT_EQ(scale_at(seven.matrix, 0), 1.0f);
  EXPECT_EQ(seven.values(), values);
  format.scale = ScaleType::kF32;
  const Quantized wide = quantize(dense_matrix(values, 1, 32), format, "int4.amax7_5");
  EXPECT_EQ(scale_at(wide.matrix, 0), 7.0f / 7.5f);
  EXPECT_FLOAT_EQ(wide.values()[0], -7.4666667f);
  EXPECT_FLOAT_EQ(wide.values()[14], 6.5333333f);
  format.scale = ScaleType::kBF16;
  EXPECT_EQ(scale_at(quantize(dense_matrix(values, 1, 32), format).matrix, 0), bf16_round(7.0f / 7.5f));
}

TEST(Cases, C85_a_tensor_on_the_grid_of_its_rule_is_unchanged) {
  // Grids that reach the rule's extreme: -8 for /7.5 would need an amax of 7.5 steps, so it is not of this kind.
  const float scale = bf16_round(0.0123f);
  std::vector<float> values;
  values.reserve(64);
  for (uint64_t k = 0; k < 64; ++k) values.push_back(scale * static_cast<float>(random_bits(85, k) % 15) - 7 * scale);
  values[3] = 7 * scale;
  values[40] = -7 * scale;
  const Quantized amax7 = quantize(dense_matrix(values, 1, 64, Element::kF32), parse_format("int4-g32"), "int4.amax7");
  EXPECT_EQ(scale_at(amax7.matrix, 0), scale);
  EXPECT_LE(amax7.total().rel_rmse(), 1e-7);
  values[3] = -8 * scale;
  values[40] = 8 * scale;
  const Quantized extreme =
      quantize(dense_matrix(values, 1, 64, Element::kF32), parse_format("int4-g32"), "int4.extreme8");
  EXPECT_EQ(scale_at(extreme.matrix, 0), scale);
  EXPECT_EQ(scale_at(extreme.matrix, 1), -scale);
  EXPECT_LE(extreme.total().rel_rmse(), 1e-7);
}

}  // namespace
}  // namespace nibble
