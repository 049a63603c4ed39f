// golden_micro.json: int4_pack_quantized_sym, int4_pack_quantized_asym, ggml_q4_0.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nibble/numerics/quantize_for_test.h"
#include "nibble/numerics/rules/float_scale.h"
#include "nibble/testing/golden.h"

namespace nibble {
namespace {

using testing::golden_floats;
using testing::golden_hex;
using testing::golden_micro;
using testing::hex_of;

DenseMatrix golden_rows(const Json& rows) {
  std::vector<float> values;
  for (const Json& row : rows) {
    const std::vector<float> floats = golden_floats(row);
    values.insert(values.end(), floats.begin(), floats.end());
  }
  return dense_matrix(values, rows.size(), rows[0].size());
}

uint16_t stored_bf16(const EncodedMatrix& matrix, uint64_t index) {
  uint16_t bits = 0;
  std::memcpy(&bits, matrix.scales.data() + 2 * index, 2);
  return bits;
}

TEST(GoldenInt4, CompressedTensorsSymmetricBytes) {
  const Json& golden = golden_micro()["int4_pack_quantized_sym"];
  const Json& expected = golden["amax_over_7.5_bf16_path"];
  const Quantized result =
      quantize(golden_rows(golden["x_bf16"]), parse_format("int4-g32"), "", BitExact::kCompressedTensors);
  const std::vector<float> values = result.values();
  for (uint64_t row = 0; row < 2; ++row) {
    EXPECT_EQ(hex_of(result.matrix.codes.data() + 32 * row, 32),
              expected["weight_packed_bytes_le"][row].get<std::string>());
    const auto q = expected["q"][row].get<std::vector<int>>();
    const std::vector<float> dequant = golden_floats(expected["dequant_bf16"][row]);
    for (uint64_t col = 0; col < 64; ++col) {
      EXPECT_EQ(int4_decode(code_of(result.matrix, row, col)), q[col]);
      EXPECT_EQ(bf16_round(values[64 * row + col]), dequant[col]);
    }
    for (uint64_t group = 0; group < 2; ++group) {
      EXPECT_EQ(stored_bf16(result.matrix, 2 * row + group),
                golden_hex(expected["weight_scale_bf16_bits"][row][group]));
    }
  }
}

// Tools for training on the amax/7 grid quantize with the float32 scale, under a floor of 1e-5, and store the rounded
// one. nibble does not write this: it rounds first. From the rule's own pieces the vector still follows.
TEST(GoldenInt4, UnroundedAmaxOver7FollowsFromTheSamePieces) {
  const Json& golden = golden_micro()["int4_pack_quantized_sym"];
  const Json& expected = golden["amax_over_7_f32_path"];
  for (uint64_t row = 0; row < 2; ++row) {
    const std::vector<float> x = golden_floats(golden["x_bf16"][row]);
    std::vector<std::byte> packed(32);
    for (uint64_t k = 0; k < 64; ++k) {
      float amax = 0;
      for (uint64_t i = 0; i < 32; ++i) amax = std::max(amax, std::abs(x[k / 32 * 32 + i]));
      const float scale = std::max(amax * (1.0f / 7.0f), 1e-5f);
      const BlockCoding block{.divisor = scale, .multiplier = scale, .low = -8, .high = 7};
      const uint8_t code = encode_element(Element::kInt4, x[k], block);
      packed[k / 2] |= std::byte{static_cast<uint8_t>(k % 2 == 0 ? code : code << 4)};
      EXPECT_EQ(bf16_encode(scale), golden_hex(expected["weight_scale_bf16_bits"][row][k / 32]));
    }
    EXPECT_EQ(hex_of(packed.data(), 32), expected["weight_packed_bytes_le"][row].get<std::string>());
  }
}

TEST(GoldenInt4, CompressedTensorsAsymmetricBytes) {
  const Json& golden = golden_micro()["int4_pack_quantized_asym"];
  const Quantized result =
      quantize(golden_rows(golden["x_bf16"]), parse_format("int4-g32-asym"), "", BitExact::kCompressedTensors);
  for (uint64_t row = 0; row < 10; ++row) {
    EXPECT_EQ(stored_bf16(result.matrix, row), golden_hex(golden["weight_scale_bf16_bits"][row]));
    EXPECT_EQ(int4_decode(result.matrix.zeros[row]), golden["zero_point_int8"][row].get<int>());
    const auto q = golden["q"][row].get<std::vector<int>>();
    for (uint64_t col = 0; col < 32; ++col) EXPECT_EQ(int4_decode(code_of(result.matrix, row, col)), q[col]);
    for (uint64_t word = 0; word < 4; ++word) {
      uint32_t bits = 0;
      std::memcpy(&bits, result.matrix.codes.data() + 16 * row + 4 * word, 4);
      EXPECT_EQ(bits, golden_hex(golden["weight_packed_i32"][row][word]));
    }
  }
}

TEST(GoldenInt4, GgmlsQ4_0Block) {
  const Json& golden = golden_micro()["ggml_q4_0"];
  Format format = parse_format("int4-g32");
  format.scale = ScaleType::kF16;
  const DenseMatrix x = dense_matrix(golden_floats(golden["x"]), 1, 32, Element::kF32);
  const Quantized result = quantize(x, format, "int4.extreme8", BitExact::kGgml);
  std::vector<std::byte> block = result.matrix.scales;
  for (uint64_t j = 0; j < 16; ++j) {
    block.push_back(std::byte{pack_nibbles(code_of(result.matrix, 0, j), code_of(result.matrix, 0, j + 16))});
  }
  EXPECT_EQ(hex_of(block.data(), block.size()), golden["block"].get<std::string>());
  EXPECT_EQ(codes_of_row(result.matrix, 0), golden["q"].get<std::vector<int>>());
  EXPECT_EQ(result.values(), golden_floats(golden["dequant"]));
  // nibble's own rule rounds the scale first and ties to even: the same scale, and a code off by one at most.
  const Quantized own = quantize(x, format, "int4.extreme8");
  EXPECT_EQ(own.matrix.scales, result.matrix.scales);
  for (uint64_t k = 0; k < 32; ++k) {
    EXPECT_LE(std::abs(code_of(own.matrix, 0, k) - code_of(result.matrix, 0, k)), 1);
  }
}

}  // namespace
}  // namespace nibble
