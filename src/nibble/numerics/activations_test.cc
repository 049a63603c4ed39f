#include "nibble/numerics/activations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "nibble/numerics/quantize_for_test.h"
#include "nibble/testing/golden.h"

namespace nibble {
namespace {

struct Activations {
  std::vector<std::byte> codes;
  std::vector<float> scales;
};

Activations quantized(const DenseMatrix& x, const ActivationQuantization& how) {
  const uint64_t groups = how.group == 0 ? 1 : (x.cols + how.group - 1) / how.group;
  Activations result{std::vector<std::byte>(x.rows * x.cols), std::vector<float>(x.rows * groups)};
  quantize_activations_1xn(x.view(), how, result.codes.data(), result.scales.data());
  return result;
}

TEST(Activations, GoldenActQuant1xN) {
  const Json& golden = testing::golden_micro()["act_quant_1xN"];
  const std::vector<float> values = testing::golden_floats(golden["x"]);
  const DenseMatrix x = dense_matrix(values, 1, values.size());
  for (const auto& [mode, expected] : golden["modes"].items()) {
    const Activations result = quantized(x, {.group = golden["N"].get<uint64_t>(), .ue8m0 = mode == "ue8m0"});
    for (size_t g = 0; g < result.scales.size(); ++g) {
      EXPECT_EQ(float_bits(result.scales[g]), testing::golden_hex(expected["scale_f32_bits"][g])) << mode;
    }
    EXPECT_EQ(testing::hex_of(result.codes.data(), result.codes.size()), expected["e4m3"].get<std::string>()) << mode;
  }
}

double decoded(const Activations& result, const ActivationQuantization& how, uint64_t cols, uint64_t row,
               uint64_t col) {
  const uint64_t group = how.group == 0 ? cols : how.group;
  const auto code = static_cast<uint8_t>(result.codes[row * cols + col]);
  const float scale = result.scales[row * (cols / group) + col / group];
  return static_cast<double>(decode_element(how.element, code, {.multiplier = scale}));
}

// Every way of scaling activations that a scheme has.
std::vector<ActivationQuantization> all_ways() {
  std::vector<ActivationQuantization> ways;
  for (const uint64_t group : {uint64_t{0}, uint64_t{32}, uint64_t{128}}) {
    for (const float floor : {0.0f, 1e-4f}) {
      ways.push_back({Element::kE4M3, group, false, floor});
      ways.push_back({Element::kE4M3, group, true, floor});
      ways.push_back({Element::kInt8, group, false, floor});
    }
  }
  return ways;
}

TEST(Activations, C13_zero_and_tiny_rows) {
  std::vector<float> values(3 * 128);
  for (uint64_t k = 0; k < 128; ++k) {
    values[k] = static_cast<float>(random_normal(13, k));
    values[256 + k] = 1e-38f;
  }
  const DenseMatrix x = dense_matrix(values, 3, 128, Element::kF32);
  const DenseMatrix alone = dense_matrix({values.begin(), values.begin() + 128}, 1, 128, Element::kF32);
  for (const ActivationQuantization& how : all_ways()) {
    const Activations result = quantized(x, how), first = quantized(alone, how);
    for (const float scale : result.scales) ASSERT_TRUE(std::isfinite(scale) && scale > 0);
    EXPECT_TRUE(std::equal(first.codes.begin(), first.codes.end(), result.codes.begin()));
    EXPECT_TRUE(std::equal(first.scales.begin(), first.scales.end(), result.scales.begin()));
    for (uint64_t k = 0; k < 128; ++k) {
      ASSERT_EQ(result.codes[128 + k], std::byte{0});
      ASSERT_LE(std::abs(decoded(result, how, 128, 2, k)), 1.1e-38);
    }
  }
}

// The same case through the weight formats with a scale for each row or group.
TEST(Activations, C13_zero_and_tiny_rows_as_weights) {
  std::vector<float> values(3 * 128);
  for (uint64_t k = 0; k < 128; ++k) {
    values[k] = static_cast<float>(random_normal(13, k));
    values[256 + k] = 1e-38f;
  }
  for (const char* name : {"fp8-channel", "fp8-block1x32", "fp8-block1x128", "int8-g32", "int8-g128", "int8-channel"}) {
    const Quantized result = quantize(dense_matrix(values, 3, 128, Element::kF32), parse_format(name));
    const Quantized first =
        quantize(dense_matrix({values.begin(), values.begin() + 128}, 1, 128, Element::kF32), parse_format(name));
    const std::vector<float> decoded_values = result.values(), decoded_first = first.values();
    for (uint64_t k = 0; k < 128; ++k) {
      EXPECT_EQ(code_of(result.matrix, 1, k), 0) << name;
      EXPECT_LE(std::abs(decoded_values[256 + k]), 1.1e-38f) << name;
      EXPECT_EQ(decoded_values[k], decoded_first[k]) << name;
    }
    const uint64_t size = result.matrix.format.scale_bytes();
    for (size_t i = 0; i < result.matrix.scales.size(); i += size) {
      const float scale = scale_value(result.matrix.format.scale, result.matrix.scales.data() + i);
      EXPECT_TRUE(std::isfinite(scale) && scale > 0) << name;
    }
  }
}

TEST(Activations, PaddingRowsOfNanChangeNothing) {
  DenseMatrix x = random_matrix(3, 64, 256, Element::kF32);
  const DenseMatrix real{Element::kF32, 8, 256, {x.bytes.begin(), x.bytes.begin() + 8 * 1024}};
  std::fill(x.bytes.begin() + 8 * 1024, x.bytes.end(), std::byte{0xff});
  for (const Element element : {Element::kE4M3, Element::kInt8}) {
    const ActivationQuantization how{.element = element};
    const Activations padded = quantized(x, how), alone = quantized(real, how);
    EXPECT_TRUE(std::equal(alone.codes.begin(), alone.codes.end(), padded.codes.begin()));
    EXPECT_TRUE(std::equal(alone.scales.begin(), alone.scales.end(), padded.scales.begin()));
  }
}

}  // namespace
}  // namespace nibble
