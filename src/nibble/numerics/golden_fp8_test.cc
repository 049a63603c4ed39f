// golden_micro.json: fp8_block.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nibble/numerics/quantize_for_test.h"
#include "nibble/testing/golden.h"

namespace nibble {
namespace {

using testing::golden_floats;
using testing::golden_hex;
using testing::golden_micro;
using testing::hex_of;

TEST(GoldenFp8Block, FloatAndUe8m0Scales) {
  const Json& golden = golden_micro()["fp8_block"];
  std::vector<float> values;
  for (const Json& row : golden["x_bf16"]) {
    const std::vector<float> floats = golden_floats(row);
    values.insert(values.end(), floats.begin(), floats.end());
  }
  const DenseMatrix x = dense_matrix(values, 3, 5);
  for (const auto& [mode, rule] : {std::pair{"float", "fp8.amax"}, std::pair{"ue8m0", "fp8.ue8m0"}}) {
    SCOPED_TRACE(mode);
    const Json& expected = golden[mode];
    const Quantized result = quantize(x, parse_format("fp8-block2x2"), rule);
    const std::vector<float> decoded = result.values();
    for (uint64_t row = 0; row < 3; ++row) {
      EXPECT_EQ(hex_of(result.matrix.codes.data() + 5 * row, 5), expected["weight_e4m3"][row].get<std::string>());
      const std::vector<float> dequant = golden_floats(expected["dequant_f32"][row]);
      for (uint64_t col = 0; col < 5; ++col) EXPECT_EQ(decoded[5 * row + col], dequant[col]);
    }
    ASSERT_EQ(result.matrix.scales.size(), 4u * 6);
    for (uint64_t i = 0; i < 6; ++i) {
      const float scale = scale_value(ScaleType::kF32, result.matrix.scales.data() + 4 * i);
      EXPECT_EQ(float_bits(scale), golden_hex(expected["weight_scale_inv_f32_bits"][i / 3][i % 3]));
    }
  }
}

TEST(GoldenFp8Block, Ue8m0ScalesAsE8m0Bytes) {
  const Json& golden = golden_micro()["fp8_block"];
  std::vector<float> values;
  for (const Json& row : golden["x_bf16"]) {
    const std::vector<float> floats = golden_floats(row);
    values.insert(values.end(), floats.begin(), floats.end());
  }
  Format format = parse_format("fp8-block2x2");
  format.scale = ScaleType::kE8M0;
  const Quantized result = quantize(dense_matrix(values, 3, 5), format, "fp8.ue8m0");
  for (uint64_t row = 0; row < 2; ++row) {
    EXPECT_EQ(hex_of(result.matrix.scales.data() + 3 * row, 3),
              golden["ue8m0"]["scale_e8m0_bytes"][row].get<std::string>());
  }
}

}  // namespace
}  // namespace nibble
