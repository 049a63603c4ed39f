// golden_micro.json: mxfp4, mxfp8, log2_hazard.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>

#include "nibble/numerics/quantize_for_test.h"
#include "nibble/numerics/rules/mx_scale.h"
#include "nibble/testing/golden.h"

namespace nibble {
namespace {

using testing::golden_bytes;
using testing::golden_floats;
using testing::golden_micro;
using testing::hex_of;

std::string hex(std::span<const std::byte> bytes) { return hex_of(bytes.data(), bytes.size()); }

// ggml's order: byte j holds elements j and j + 16, after the scale byte.
std::string ggml_block(const EncodedMatrix& matrix) {
  std::vector<std::byte> block = matrix.scales;
  for (uint64_t j = 0; j < 16; ++j) {
    block.push_back(std::byte{pack_nibbles(code_of(matrix, 0, j), code_of(matrix, 0, j + 16))});
  }
  return hex(block);
}

TEST(GoldenMxfp4, EveryRuleGivesScaleCodesAndValues) {
  const Format format = parse_format("mxfp4");
  ASSERT_EQ(golden_micro()["mxfp4"].size(), 6u);
  for (const Json& block : golden_micro()["mxfp4"]) {
    const DenseMatrix x = dense_matrix(golden_floats(block["x"]), 1, 32, Element::kF32);
    for (const auto& [rule, expected] : block["rules"].items()) {
      SCOPED_TRACE(block["name"].get<std::string>() + " " + rule);
      const Quantized result = quantize(x, format, "mx." + rule);
      EXPECT_EQ(static_cast<int>(result.matrix.scales[0]), expected["e8m0"].get<int>());
      EXPECT_EQ(hex(result.matrix.codes), hex(canonical_fp4(golden_bytes(expected["packed_adjacent"]))));
      EXPECT_EQ(result.values(), golden_floats(expected["dequant"]));
    }
  }
}

TEST(GoldenMxfp4, ModelOptsBytes) {
  for (const Json& block : golden_micro()["mxfp4"]) {
    const DenseMatrix x = dense_matrix(golden_floats(block["x"]), 1, 32, Element::kBF16);
    const Quantized result = quantize(x, parse_format("mxfp4"), "mx.rceil", BitExact::kModelOpt);
    const Json& expected = block["modelopt_mxfp4_half_toward_zero"];
    EXPECT_EQ(static_cast<int>(result.matrix.scales[0]), expected["e8m0"].get<int>()) << block["name"];
    EXPECT_EQ(hex(result.matrix.codes), expected["packed_adjacent"].get<std::string>()) << block["name"];
  }
}

TEST(GoldenMxfp4, GgmlsBlocks) {
  for (const Json& block : golden_micro()["mxfp4"]) {
    const DenseMatrix x = dense_matrix(golden_floats(block["x"]), 1, 32, Element::kF32);
    const Quantized result = quantize(x, parse_format("mxfp4"), "mx.floor", BitExact::kGgml);
    EXPECT_EQ(ggml_block(result.matrix), block["ggml_reference_quantizer"]["block"].get<std::string>())
        << block["name"];
  }
}

// The Triton kernel that quantizes in gpt-oss style rounds ties away from zero. nibble does not write that, but
// has to know that it is another encoder: its scales are those of mx.rceil, its codes differ at ties alone.
TEST(GoldenMxfp4, TritonDiffersFromRceilAtTiesAlone) {
  int differing = 0;
  for (const Json& block : golden_micro()["mxfp4"]) {
    const std::vector<float> x = golden_floats(block["x"]);
    const Quantized result = quantize(dense_matrix(x, 1, 32, Element::kF32), parse_format("mxfp4"), "mx.rceil");
    const Json& expected = block["triton_round_up_half_away"];
    ASSERT_EQ(static_cast<int>(result.matrix.scales[0]), expected["e8m0"].get<int>());
    const std::vector<std::byte> codes = canonical_fp4(golden_bytes(expected["packed_adjacent"]));
    const float scale = scale_value(ScaleType::kE8M0, &result.matrix.scales[0]);
    for (uint64_t k = 0; k < 32; ++k) {
      const uint8_t theirs = unpack_nibble(static_cast<uint8_t>(codes[k / 2]), k % 2 != 0);
      const uint8_t ours = code_of(result.matrix, 0, k);
      if (theirs == ours) continue;
      ++differing;
      EXPECT_EQ(std::abs(x[k] / scale - e2m1_decode(theirs)), std::abs(x[k] / scale - e2m1_decode(ours))) << x[k];
    }
  }
  EXPECT_GT(differing, 0);
}

TEST(GoldenMxfp8, FloorAndRceil) {
  const Json& golden = golden_micro()["mxfp8"];
  const DenseMatrix x = dense_matrix(golden_floats(golden["x"]), 1, 32, Element::kF32);
  ASSERT_EQ(golden["rules"].size(), 2u);
  for (const auto& [rule, expected] : golden["rules"].items()) {
    const Quantized result = quantize(x, parse_format("mxfp8"), "mx." + rule);
    EXPECT_EQ(static_cast<int>(result.matrix.scales[0]), expected["e8m0"].get<int>()) << rule;
    EXPECT_EQ(hex(result.matrix.codes), expected["e4m3"].get<std::string>()) << rule;
  }
}

TEST(GoldenLog2Hazard, ExponentsComeFromTheBits) {
  const Json& golden = golden_micro()["log2_hazard"];
  const float amax = bits_float(testing::golden_hex(golden["amax_f32_bits"]));
  const int exact = golden["exact_floor_log2"].get<int>();
  ASSERT_NE(exact, golden["float32_log2_then_floor"].get<int>());
  EXPECT_EQ(mx_floor(amax, kMxE2m1), static_cast<uint32_t>(exact - 2 + 127));
}

}  // namespace
}  // namespace nibble
