#include "nibble/numerics/recast.h"

#include <gtest/gtest.h>

#include "nibble/numerics/quantize_for_test.h"

namespace nibble {
namespace {

// Random codes; block exponents uniform in [high - span, high], both ends met.
EncodedMatrix random_mxfp4(uint64_t seed, uint64_t rows, uint64_t cols, int high, int span) {
  EncodedMatrix matrix = EncodedMatrix::make(parse_format("mxfp4"), rows, cols);
  for (size_t i = 0; i < matrix.codes.size(); ++i) matrix.codes[i] = static_cast<std::byte>(random_bits(seed, i) & 255);
  for (size_t i = 0; i < matrix.scales.size(); ++i) {
    const int down = i == 0   ? 0
                     : i == 1 ? span
                              : static_cast<int>(random_bits(seed + 1, i) % static_cast<unsigned>(span + 1));
    matrix.scales[i] = static_cast<std::byte>(high - down + 127);
  }
  for (size_t block = 0; block < 2; ++block) matrix.codes[16 * block] = std::byte{0x91};  // 0.5 and -0.5
  return matrix;
}

std::vector<float> values_of(const EncodedMatrix& matrix) {
  std::vector<float> values(matrix.rows * matrix.cols);
  decode(matrix, values);
  return values;
}

struct Result {
  bool exact = false;
  EncodedMatrix matrix;
};

Result recast(const EncodedMatrix& from, const Format& to, SecondLevel level = SecondLevel::kMultiply) {
  const ExactRecast* how = exact_recast(from.format, to);
  EXPECT_NE(how, nullptr);
  Result result;
  result.matrix = EncodedMatrix::make(to, from.rows, from.cols);
  result.matrix.tensor_scale = how->tensor_scale(to, how->scan(from.view()), level);
  result.exact = how->convert(from.view(), result.matrix.tensor_scale, result.matrix.mutable_view());
  return result;
}

TEST(Recast, ScanSeesBlocksWithValuesAlone) {
  EncodedMatrix matrix = random_mxfp4(1, 2, 128, 10, 5);
  matrix.scales[3] = std::byte{250};
  std::fill_n(matrix.codes.begin() + 16 * 3, 16, std::byte{0x80});  // zeros of both signs
  const ExponentSpan span = exact_recast(matrix.format, parse_format("nvfp4"))->scan(matrix.view());
  EXPECT_EQ(span.low, 5);
  EXPECT_EQ(span.high, 10);
  const EncodedMatrix zero = EncodedMatrix::make(matrix.format, 2, 64);
  EXPECT_TRUE(exact_recast(matrix.format, parse_format("nvfp4"))->scan(zero.view()).empty());
}

TEST(Recast, EveryCastIsLosslessUpToItsSpanAndRefusesBeyond) {
  for (const char* name : {"nvfp4", "fp8-block", "fp8-channel", "fp8-tensor"}) {
    const Format to = parse_format(name);
    const int most = exact_recast(parse_format("mxfp4"), to)->max_span;
    for (const int high : {100, 8, 0, -20, -90}) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(high));
      const EncodedMatrix good = random_mxfp4(2, 32, 256, high, most);
      const Result exact = recast(good, to);
      EXPECT_TRUE(exact.exact);
      EXPECT_EQ(values_of(exact.matrix), values_of(good));
      // Both ends lie in row 0 and tile 0, so that the span is too wide for every target.
      const EncodedMatrix wide = random_mxfp4(2, 32, 256, high, most + 1);
      EXPECT_FALSE(recast(wide, to).exact);
    }
  }
}

TEST(Recast, Mxfp8TakesAnySpan) {
  EncodedMatrix matrix = random_mxfp4(3, 4, 256, 127, 254);
  const Result result = recast(matrix, parse_format("mxfp8"));
  EXPECT_TRUE(result.exact);
  EXPECT_EQ(result.matrix.scales, matrix.scales);
  EXPECT_EQ(values_of(result.matrix), values_of(matrix));
}

TEST(Recast, Nvfp4KeepsTheNibblesAndTakesBothForms) {
  const EncodedMatrix matrix = random_mxfp4(4, 4, 256, 3, 17);
  for (const SecondLevel level : {SecondLevel::kMultiply, SecondLevel::kDivide}) {
    const Result result = recast(matrix, parse_format("nvfp4"), level);
    EXPECT_TRUE(result.exact);
    EXPECT_EQ(result.matrix.codes, matrix.codes);
    EXPECT_EQ(result.matrix.tensor_scale.level, level);
    EXPECT_EQ(result.matrix.tensor_scale.value, level == SecondLevel::kDivide ? 32.0f : 1.0f / 32);  // m = 3 - 8
    EXPECT_EQ(values_of(result.matrix), values_of(matrix));
  }
}

TEST(Recast, Nvfp4AtTheEndsOfTheExponents) {
  for (const int high : {127, -110, -127}) {
    for (const SecondLevel level : {SecondLevel::kMultiply, SecondLevel::kDivide}) {
      const int span = high == -127 ? 0 : 17;
      const EncodedMatrix matrix = random_mxfp4(5, 1, 64, high, span);
      const Result result = recast(matrix, parse_format("nvfp4"), level);
      EXPECT_TRUE(result.exact) << high;
      EXPECT_EQ(values_of(result.matrix), values_of(matrix)) << high;
    }
  }
}

TEST(Recast, Fp8BlockFollowsTheVendorsRecipe) {
  // scale = 2^(kmax - 6), one tile of 128 x 128.
  const EncodedMatrix matrix = random_mxfp4(6, 128, 128, 4, 14);
  for (const ScaleType scale : {ScaleType::kF32, ScaleType::kBF16, ScaleType::kE8M0}) {
    Format to = parse_format("fp8-block");
    to.scale = scale;
    const Result result = recast(matrix, to);
    EXPECT_TRUE(result.exact);
    EXPECT_EQ(scale_value(scale, result.matrix.scales.data()), 0.25f);
    EXPECT_EQ(values_of(result.matrix), values_of(matrix));
  }
}

TEST(Recast, Fp8TilesAreJudgedOneByOne) {
  // Exponents 40 apart, but in different tiles.
  EncodedMatrix matrix = random_mxfp4(7, 256, 128, 20, 0);
  for (size_t i = matrix.scales.size() / 2; i < matrix.scales.size(); ++i) matrix.scales[i] = std::byte{127 - 20};
  const Result result = recast(matrix, parse_format("fp8-block"));
  EXPECT_TRUE(result.exact);
  EXPECT_EQ(values_of(result.matrix), values_of(matrix));
  EXPECT_FALSE(recast(matrix, parse_format("fp8-tensor")).exact);
}

TEST(Recast, AScaleTypeThatCannotHoldThePowerIsNotExact) {
  Format to = parse_format("fp8-channel");
  to.scale = ScaleType::kF16;
  EXPECT_TRUE(recast(random_mxfp4(8, 2, 64, 0, 3), to).exact);
  EXPECT_FALSE(recast(random_mxfp4(8, 2, 64, 60, 3), to).exact);
}

TEST(Recast, OtherPairsHaveNone) {
  EXPECT_EQ(exact_recast(parse_format("nvfp4"), parse_format("mxfp4")), nullptr);
  EXPECT_EQ(exact_recast(parse_format("mxfp4"), parse_format("int4-g32")), nullptr);
  EXPECT_EQ(exact_recast(parse_format("mxfp4"), parse_format("bf16")), nullptr);
}

}  // namespace
}  // namespace nibble
