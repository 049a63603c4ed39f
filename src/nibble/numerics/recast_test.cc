#include "nibble/numerics/recast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "nibble/numerics/codec/e2m1.h"
#include "nibble/numerics/codec/e4m3.h"
#include "nibble/numerics/effective_scale.h"
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
  if (how->shared != nullptr) result.matrix.tensor_scale = how->shared->choose(how->shared->scan(from.view()), level);
  result.exact = !how->convert(from.view(), result.matrix.tensor_scale, result.matrix.mutable_view());
  return result;
}

TEST(Recast, ScanSeesBlocksWithValuesAlone) {
  EncodedMatrix matrix = random_mxfp4(1, 2, 128, 10, 5);
  matrix.scales[3] = std::byte{250};
  std::fill_n(matrix.codes.begin() + 16 * 3, 16, std::byte{0x80});  // zeros of both signs
  const SharedScale* shared = exact_recast(matrix.format, parse_format("nvfp4"))->shared;
  ASSERT_NE(shared, nullptr);
  const ExponentSpan span = shared->scan(matrix.view());
  EXPECT_EQ(span.low, 5);
  EXPECT_EQ(span.high, 10);
  const EncodedMatrix zero = EncodedMatrix::make(matrix.format, 2, 64);
  EXPECT_TRUE(shared->scan(zero.view()).empty());
}

TEST(Recast, EveryCastIsLosslessUpToItsSpanAndRefusesBeyond) {
  for (const auto& [name, most] :
       {std::pair{"nvfp4", 17}, {"fp8-block", 14}, {"fp8-channel", 14}, {"fp8-tensor", 14}}) {
    const Format to = parse_format(name);
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

// Exponents further apart than the customary scale allows, but the largest block holds nothing above 1.
TEST(Recast, Fp8GoesBelowTheCustomaryScaleWhereThatHelps) {
  EncodedMatrix matrix = random_mxfp4(9, 1, 64, 10, 16);
  std::fill_n(matrix.codes.begin(), 16, std::byte{0x21});  // 0.5 and 1
  const Result result = recast(matrix, parse_format("fp8-channel"));
  EXPECT_TRUE(result.exact);
  EXPECT_EQ(scale_value(ScaleType::kF32, result.matrix.scales.data()), 4.0f);  // 1 * 2^10 = 256 * 4
  EXPECT_EQ(values_of(result.matrix), values_of(matrix));
  matrix.codes[0] = std::byte{0x71};
  EXPECT_FALSE(recast(matrix, parse_format("fp8-channel")).exact);
}

// ---- NVFP4 -> FP8

constexpr int kLevels = 3;
TensorScale second_level(int which, float value) {
  constexpr SecondLevel kAll[kLevels] = {SecondLevel::kNone, SecondLevel::kMultiply, SecondLevel::kDivide};
  return {kAll[which], which == 0 ? 1.0f : value};
}

// One row of two blocks with the codes whose bits are set; the others are zeros.
EncodedMatrix two_blocks(const uint8_t (&scales)[2], const uint8_t (&used)[2], const TensorScale& second) {
  EncodedMatrix matrix = EncodedMatrix::make(parse_format("nvfp4"), 1, 32);
  matrix.tensor_scale = second;
  for (size_t block = 0; block < 2; ++block) {
    matrix.scales[block] = std::byte{scales[block]};
    for (uint8_t code = 0; code < 8; ++code) {
      if ((used[block] >> code & 1u) != 0)
        matrix.codes[8 * block + code] = static_cast<std::byte>((code | 8u) << 4 | code);
    }
  }
  return matrix;
}

// All products of scales and codes, in units of 2^-10: at most 448 * 6 * 2^10 < 2^22.
std::vector<uint64_t> products_of(const uint8_t (&scales)[2], const uint8_t (&used)[2]) {
  constexpr int kTwiceE2m1[8] = {0, 1, 2, 3, 4, 6, 8, 12};
  std::vector<uint64_t> products;
  for (size_t block = 0; block < 2; ++block) {
    const uint64_t exponent = scales[block] >> 3, mantissa = scales[block] & 7u;
    const uint64_t scale = exponent == 0 ? mantissa : (mantissa + 8) << (exponent - 1);  // in units of 2^-9
    for (size_t code = 1; code < 8; ++code) {
      if ((used[block] >> code & 1u) != 0) products.push_back(scale * static_cast<uint64_t>(kTwiceE2m1[code]));
    }
  }
  return products;
}

// Four significant bits, in whole units of 2^-9.
bool is_e4m3(uint64_t scaled) {
  while (scaled != 0 && scaled % 2 == 0) scaled /= 2;
  return scaled < 16;
}

// Is there a power of two under which all products are E4M3 numbers?
bool has_power(const std::vector<uint64_t>& products) {
  for (int up = -30; up <= 30; ++up) {
    const bool all = std::all_of(products.begin(), products.end(), [up](uint64_t n) {
      if (up < 0 && n % (uint64_t{1} << -up) != 0) return false;
      const uint64_t scaled = up < 0 ? n >> -up : n << up;
      return scaled <= 448u << 9 && is_e4m3(scaled);
    });
    if (all) return true;
  }
  return false;
}

// Is there any scale? Under it the largest product has one of the eight significands of E4M3; the smaller the scale the
// better, so that it stands in the highest binade with that significand.
bool has_scale(const std::vector<uint64_t>& products) {
  const uint64_t largest = products.empty() ? 1 : *std::max_element(products.begin(), products.end());
  for (const uint64_t code : {448u, 416u, 384u, 352u, 320u, 288u, 256u, 240u}) {
    const bool all = std::all_of(products.begin(), products.end(), [&](uint64_t n) {
      const uint64_t scaled = n * (code << 9);
      return scaled % largest == 0 && is_e4m3(scaled / largest);
    });
    if (all) return true;
  }
  return false;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// All pairs of block scales (0 and NaN aside), each with all codes and with some. The second level is a power of two:
// then the decoder rounds nothing, and whole numbers tell.
TEST(Recast, Nvfp4ToFp8FindsAScaleWheneverThereIsOne) {
  uint64_t exact = 0, inexact = 0, no_power = 0;
  for (uint8_t first = 1; first < 0x7f; ++first) {
    for (uint8_t second = 1; second < 0x7f; ++second) {
      const uint64_t random = random_bits(first, second);
      for (const uint32_t used : {0xfefeu, static_cast<uint32_t>(random & 0xffffu), 1u << (1 + random % 7) | 0x400u}) {
        const uint8_t scales[2] = {first, second};
        const uint8_t codes[2] = {static_cast<uint8_t>(used & 0xfeu), static_cast<uint8_t>(used >> 8 & 0xfeu)};
        const EncodedMatrix matrix =
            two_blocks(scales, codes, second_level(static_cast<int>(random % kLevels), 0.125f));
        const std::vector<uint64_t> products = products_of(scales, codes);
        const bool any_scale = random % 2 == 0;
        const bool possible = any_scale ? has_scale(products) : has_power(products);
        const Format to = parse_format(any_scale ? "fp8-channel" : "mxfp8");
        no_power += possible && !has_power(products) ? 1u : 0u;
        const Result result = recast(matrix, to);
        ASSERT_EQ(result.exact, possible) << int{first} << " " << int{second} << " " << used;
        (possible ? exact : inexact) += 1;
        ASSERT_TRUE(!possible || same_bits(values_of(result.matrix), values_of(matrix)));
      }
    }
  }
  EXPECT_GT(exact, 1000u);
  EXPECT_GT(inexact, 1000u);
  EXPECT_GT(no_power, 100u);
}

// Second levels of any mantissa: the products round, and equal means equal to the decoder. Brute force over all scales
// and codes that could give the same float32 numbers.
TEST(Recast, Nvfp4ToFp8UnderAnySecondLevelIsJudgedByTheBits) {
  uint64_t exact = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    const uint64_t random = random_bits(11, i);
    const int which = 1 + static_cast<int>(random & 1u);
    const float second = 1.0f + static_cast<float>(random >> 40) * 0x1p-24f;
    const uint8_t scales[2] = {static_cast<uint8_t>(0x38 + (random >> 1 & 7u)),
                               static_cast<uint8_t>(0x40 + (random >> 4 & 7u))};
    const uint8_t codes[2] = {static_cast<uint8_t>(random >> 8 & 0xfeu), static_cast<uint8_t>(random >> 16 & 0xfeu)};
    const EncodedMatrix matrix = two_blocks(scales, codes, second_level(which, second));
    const std::vector<float> values = values_of(matrix);
    const float unit = which == 1 ? second : 1.0f / second;
    const auto fits = [&values](float scale) {
      return std::all_of(values.begin(), values.end(), [scale](float value) {
        for (int code = 0; code < 256; ++code) {
          if (e4m3_decode(static_cast<uint8_t>(code)) * scale == value) return true;
        }
        return false;
      });
    };
    bool possible = false;
    for (int k = -12; k <= 12 && !possible; ++k) possible = fits(unit * exp2_int(k));
    double largest = 0;
    for (size_t block = 0; block < 2; ++block) {
      const float scale = effective_scale(e4m3_decode(scales[block]), matrix.tensor_scale.level, second);
      for (uint8_t code = 0; code < 8; ++code) {
        if ((codes[block] >> code & 1u) != 0) largest = std::max(largest, double{scale} * double{e2m1_decode(code)});
      }
    }
    for (const double code : {448.0, 416.0, 384.0, 352.0, 320.0, 288.0, 256.0, 240.0}) {
      const uint32_t quotient = float_bits(static_cast<float>(largest / code));
      for (uint32_t bits = quotient - 3; bits <= quotient + 3; ++bits) possible = possible || fits(bits_float(bits));
    }
    const Result result = recast(matrix, parse_format("fp8-tensor"));
    ASSERT_EQ(result.exact, possible) << i;
    exact += possible ? 1u : 0u;
    ASSERT_TRUE(!possible || same_bits(values_of(result.matrix), values));
  }
  EXPECT_GT(exact, 100u);
  EXPECT_LT(exact, 3900u);
}

// 39 and 33 times the second level are 13 and 11 times its triple: rounded so under the neighbour of a quotient.
TEST(Recast, Nvfp4ToFp8TriesTheNeighboursOfARoundedQuotient) {
  const EncodedMatrix matrix =
      two_blocks({0x4d, 0x4b}, {1 << 7, 1 << 7}, {SecondLevel::kMultiply, bits_float(0x3b19234du)});
  for (const char* format : {"fp8-tensor", "fp8-channel", "fp8-block"}) {
    const Result result = recast(matrix, parse_format(format));
    ASSERT_TRUE(result.exact) << format;
    EXPECT_TRUE(same_bits(values_of(result.matrix), values_of(matrix))) << format;
    EXPECT_EQ(scale_value(ScaleType::kF32, result.matrix.scales.data()), 0.00021906552f) << format;
  }
}

TEST(Recast, Mxfp4ThroughNvfp4GivesTheSameFp8) {
  for (const char* name : {"mxfp8", "fp8-block", "fp8-channel", "fp8-tensor"}) {
    for (const SecondLevel level : {SecondLevel::kMultiply, SecondLevel::kDivide}) {
      for (const int high : {100, 3, -90}) {
        SCOPED_TRACE(std::string(name) + " " + std::to_string(high));
        const EncodedMatrix mx = random_mxfp4(10, 200, 160, high, 14);
        const Format to = parse_format(name);
        const Result through = recast(recast(mx, parse_format("nvfp4"), level).matrix, to);
        EXPECT_TRUE(through.exact);
        const Result direct = recast(mx, to);
        EXPECT_EQ(through.matrix.codes, direct.matrix.codes);
        EXPECT_EQ(through.matrix.scales, direct.matrix.scales);
        EXPECT_TRUE(same_bits(values_of(through.matrix), values_of(mx)));
      }
    }
  }
}

// The part that fails is named, and a part of zeros fails nowhere.
TEST(Recast, Nvfp4ToFp8NamesTheTileThatFails) {
  EncodedMatrix matrix = EncodedMatrix::make(parse_format("nvfp4"), 256, 256);
  matrix.tensor_scale = {SecondLevel::kMultiply, 0.75f};
  std::fill(matrix.scales.begin(), matrix.scales.end(), std::byte{0x3f});  // 1.875
  std::fill_n(matrix.codes.begin() + 200 * 128, 128, std::byte{0x22});     // 1
  const Format to = parse_format("fp8-block");
  EXPECT_TRUE(recast(matrix, to).exact);
  // 1.875 * 1.5, 1.875 and 1.375 are 45, 30 and 22 of one unit: six bits and no common divisor.
  matrix.codes[200 * 128 + 100] = std::byte{0x23};
  matrix.scales[200 * 16 + 9] = std::byte{0x3b};
  EncodedMatrix target = EncodedMatrix::make(to, 256, 256);
  const auto inexact = exact_recast(matrix.format, to)->convert(matrix.view(), {}, target.mutable_view());
  ASSERT_TRUE(inexact);
  EXPECT_EQ(inexact->row, 128u);
  EXPECT_EQ(inexact->column, 128u);
  EXPECT_FALSE(inexact->values.empty());
}

TEST(Recast, ASecondLevelThatIsNoScaleIsNotExact) {
  for (const float second : {0.0f, -1.0f, 1e-45f}) {
    const EncodedMatrix matrix = two_blocks({0x38, 0x38}, {4, 4}, {SecondLevel::kDivide, second});
    EXPECT_FALSE(recast(matrix, parse_format("fp8-tensor")).exact) << second;
  }
}

TEST(Recast, OtherPairsHaveNone) {
  EXPECT_EQ(exact_recast(parse_format("nvfp4"), parse_format("mxfp4")), nullptr);
  EXPECT_EQ(exact_recast(parse_format("mxfp4"), parse_format("int4-g32")), nullptr);
  EXPECT_EQ(exact_recast(parse_format("mxfp4"), parse_format("bf16")), nullptr);
}

}  // namespace
}  // namespace nibble
