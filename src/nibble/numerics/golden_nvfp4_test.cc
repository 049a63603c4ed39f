// golden_micro.json: nvfp4, mxfp4_to_nvfp4_exact.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>

#include "nibble/numerics/quantize_for_test.h"
#include "nibble/numerics/recast.h"
#include "nibble/numerics/rules/nv_scale.h"
#include "nibble/testing/golden.h"

namespace nibble {
namespace {

using testing::golden_bytes;
using testing::golden_floats;
using testing::golden_micro;
using testing::hex_of;

std::string hex(std::span<const std::byte> bytes) { return hex_of(bytes.data(), bytes.size()); }

DenseMatrix golden_x(Element element = Element::kBF16) {
  return dense_matrix(golden_floats(golden_micro()["nvfp4"]["x"]), 1, 64, element);
}

TEST(GoldenNvfp4, ModelOptsBytes) {
  const Json& expected = golden_micro()["nvfp4"]["modelopt"];
  const Quantized result = quantize(golden_x(), parse_format("nvfp4"), "nv.two_level", BitExact::kModelOpt);
  EXPECT_EQ(result.matrix.tensor_scale.level, SecondLevel::kMultiply);
  EXPECT_EQ(float_bits(result.matrix.tensor_scale.value), testing::golden_hex(expected["weight_scale_2_f32_bits"]));
  EXPECT_EQ(hex(result.matrix.scales), expected["weight_scale_e4m3"].get<std::string>());
  EXPECT_EQ(hex(result.matrix.codes), expected["weight_u8"].get<std::string>());
  EXPECT_EQ(codes_of_row(result.matrix, 0), expected["codes"].get<std::vector<int>>());
  EXPECT_EQ(result.values(), golden_floats(expected["dequant_f32"]));
}

TEST(GoldenNvfp4, OwnTwoLevelBytesAreModelOptsWithoutMinusZero) {
  const Json& expected = golden_micro()["nvfp4"]["modelopt"];
  for (const Element element : {Element::kBF16, Element::kF32}) {
    const Quantized result = quantize(golden_x(element), parse_format("nvfp4"));
    EXPECT_EQ(hex(result.matrix.scales), expected["weight_scale_e4m3"].get<std::string>());
    EXPECT_EQ(hex(result.matrix.codes), hex(canonical_fp4(golden_bytes(expected["weight_u8"]))));
  }
}

TEST(GoldenNvfp4, CompressedTensorsBytes) {
  const Json& expected = golden_micro()["nvfp4"]["compressed_tensors_bf16_path"];
  const Quantized result = quantize(golden_x(), parse_format("nvfp4"), "nv.ct", BitExact::kCompressedTensors);
  EXPECT_EQ(result.matrix.tensor_scale.level, SecondLevel::kDivide);
  EXPECT_EQ(float_bits(result.matrix.tensor_scale.value),
            testing::golden_hex(expected["weight_global_scale_f32_bits"]));
  EXPECT_EQ(hex(result.matrix.scales), expected["weight_scale_e4m3"].get<std::string>());
  EXPECT_EQ(hex(result.matrix.codes), expected["weight_packed"].get<std::string>());
  EXPECT_EQ(result.values(), golden_floats(expected["dequant_f32"]));
}

TEST(GoldenNvfp4, FourOverSixBytes) {
  const Json& expected = golden_micro()["nvfp4"]["four_over_six_mse"];
  const Quantized result = quantize(golden_x(), parse_format("nvfp4"), "nv.four_six");
  EXPECT_EQ(result.matrix.tensor_scale.value, static_cast<float>(expected["scale_2"].get<double>()));
  EXPECT_EQ(hex(result.matrix.scales), expected["weight_scale_e4m3"].get<std::string>());
  EXPECT_EQ(hex(result.matrix.codes), hex(canonical_fp4(golden_bytes(expected["weight_u8"]))));
}

// The errors of both candidates, from which the choice follows.
TEST(GoldenNvfp4, FourOverSixErrorsAreTheGoldenOnes) {
  const Json& expected = golden_micro()["nvfp4"]["four_over_six_mse"];
  const std::vector<float> x = golden_floats(golden_micro()["nvfp4"]["x"]);
  const auto second = static_cast<float>(expected["scale_2"].get<double>());
  for (uint64_t b = 0; b < 4; ++b) {
    float amax = 0;
    for (uint64_t i = 0; i < 16; ++i) amax = std::max(amax, std::abs(x[16 * b + i]));
    for (const auto& [factor, key] : {std::pair{1.0f, "sq_err_max6"}, std::pair{1.5f, "sq_err_max4"}}) {
      const uint32_t stored = nv_four_six_scale(amax, nv_second(SecondLevel::kMultiply, second), factor);
      const float effective = e4m3_decode(static_cast<uint8_t>(stored)) * second;
      double noise = 0;
      for (uint64_t i = 0; i < 16; ++i) {
        const BlockCoding block{.divisor = effective, .multiplier = effective};
        const uint8_t code = encode_element(Element::kE2M1, x[16 * b + i], block);
        const double error = x[16 * b + i] - decode_element(Element::kE2M1, code, block);
        noise += error * error;
      }
      EXPECT_DOUBLE_EQ(noise, expected[key][b].get<double>()) << b << key;
    }
  }
}

// ggml's own NVFP4 quantizer has one level, and rounds scales half up: nv.single agrees where no tie and no end of the
// range is met, as in this vector, whose last block lies under ggml's smallest scale.
TEST(GoldenNvfp4, GgmlsScaleRoundingIsNotOurs) {
  int equal = 0, different = 0;
  for (const Json& row : golden_micro()["nvfp4"]["ggml_ue4m3_encode"]) {
    const auto x = static_cast<float>(row["x"].get<double>());
    EXPECT_EQ(e4m3_encode(x), testing::golden_hex(row["ieee_rne_e4m3"])) << x;
    (row["byte"] == row["ieee_rne_e4m3"] ? equal : different) += 1;
  }
  EXPECT_GT(equal, 0);
  EXPECT_GT(different, 0);
}

TEST(GoldenNvfp4, SingleLevelScalesAreGgmlsAwayFromTies) {
  const Json& golden = golden_micro()["nvfp4"]["ggml_reference_quantizer_on_64x"];
  std::vector<float> x = golden_floats(golden_micro()["nvfp4"]["x"]);
  for (float& value : x) value *= golden["x_times"].get<float>();
  const Quantized result = quantize(dense_matrix(x, 1, 64, Element::kF32), parse_format("nvfp4"), "nv.single");
  EXPECT_EQ(result.matrix.tensor_scale, (TensorScale{SecondLevel::kMultiply, 1.0f}));
  const std::vector<std::byte> block = golden_bytes(golden["block"]);
  for (uint64_t b = 0; b < 3; ++b) EXPECT_EQ(result.matrix.scales[b], block[b]) << b;
}

TEST(GoldenRecast, Mxfp4ToNvfp4) {
  const Json& golden = golden_micro()["mxfp4_to_nvfp4_exact"];
  const auto exponents = golden["e8m0"].get<std::vector<int>>();
  EncodedMatrix mx = EncodedMatrix::make(parse_format("mxfp4"), 1, 32 * exponents.size());
  for (size_t b = 0; b < exponents.size(); ++b) {
    mx.scales[b] = static_cast<std::byte>(exponents[b]);
    for (size_t j = 0; j < 16 && exponents[b] > 0; ++j) {
      mx.codes[16 * b + j] = static_cast<std::byte>(random_bits(7, 16 * b + j) & 0xff);
    }
  }
  const Format to = parse_format("nvfp4");
  const ExactRecast* recast = exact_recast(mx.format, to);
  ASSERT_NE(recast, nullptr);
  ASSERT_NE(recast->shared, nullptr);
  EXPECT_EQ(recast->shared->max_span, 17);
  EncodedMatrix nv = EncodedMatrix::make(to, 1, mx.cols);
  nv.tensor_scale = recast->shared->choose(recast->shared->scan(mx.view()), SecondLevel::kMultiply);
  EXPECT_EQ(nv.tensor_scale.value, golden["weight_scale_2"].get<float>());
  ASSERT_FALSE(recast->convert(mx.view(), nv.tensor_scale, nv.mutable_view()));
  EXPECT_EQ(hex(nv.scales), golden["e4m3_per_16_block"].get<std::string>());
  EXPECT_EQ(hex(nv.codes), hex(mx.codes));
  std::vector<float> before(mx.cols), after(mx.cols);
  decode(mx, before);
  decode(nv, after);
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace nibble
