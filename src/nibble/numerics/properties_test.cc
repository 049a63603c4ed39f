// Properties of quantizing: the header-only functions are what the library runs, values come back unchanged a second
// time, cuts and strides do not matter, errors are what decoding says.
#include <gtest/gtest.h>

#include <cmath>

#include "nibble/numerics/effective_scale.h"
#include "nibble/numerics/quantize_for_test.h"
#include "nibble/numerics/rules/float_scale.h"
#include "nibble/numerics/rules/mx_scale.h"
#include "nibble/numerics/rules/nv_scale.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {
namespace {

std::vector<float> floats_of(const DenseMatrix& matrix) {
  std::vector<float> values(matrix.rows * matrix.cols);
  convert(matrix.view(), Element::kF32, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

BlockStats stats_of(const std::vector<float>& block) {
  BlockStats stats;
  for (const float x : block) {
    if (std::abs(x) > stats.amax) {
      stats.amax = std::abs(x);
      stats.extreme = x;
    }
    stats.min = std::min(stats.min, x);
    stats.max = std::max(stats.max, x);
  }
  return stats;
}

// ---- C87: fake quantization by the host+device functions alone, as a kernel or a training step would call them

struct FakeRule {
  const char* format;
  const char* rule;
  uint32_t (*stored)(const BlockStats& stats, const TensorScale& tensor);
};

constexpr uint32_t nv_stored(const BlockStats& stats, const TensorScale& tensor) {
  return nv_block_scale(stats.amax, nv_second(tensor.level, tensor.value));
}

const FakeRule kFakeRules[] = {
    {"int4-g32", "int4.amax7_5",
     [](const BlockStats& s, const TensorScale&) {
       return scale_encode<ScaleType::kBF16>(amax_scale(s.amax, kInt4FullRange));
     }},
    {"int4-g32", "int4.amax7",
     [](const BlockStats& s, const TensorScale&) {
       return scale_encode<ScaleType::kBF16>(amax_scale(s.amax, kInt4SymmetricRange));
     }},
    {"int4-g32", "int4.extreme8",
     [](const BlockStats& s, const TensorScale&) {
       return scale_encode<ScaleType::kBF16>(int4_extreme_scale(s.extreme));
     }},
    {"int4-g32-asym", "int4.asym",
     [](const BlockStats& s, const TensorScale&) {
       return scale_encode<ScaleType::kBF16>(int4_asymmetric_scale(s.min, s.max));
     }},
    {"mxfp4", "mx.even", [](const BlockStats& s, const TensorScale&) { return mx_even(s.amax, kMxE2m1); }},
    {"mxfp4", "mx.floor", [](const BlockStats& s, const TensorScale&) { return mx_floor(s.amax, kMxE2m1); }},
    {"mxfp4", "mx.rceil", [](const BlockStats& s, const TensorScale&) { return mx_rceil(s.amax, kMxE2m1); }},
    {"mxfp4", "mx.ceil", [](const BlockStats& s, const TensorScale&) { return mx_ceil(s.amax, kMxE2m1); }},
    {"mxfp8", "mx.even", [](const BlockStats& s, const TensorScale&) { return mx_even(s.amax, kMxE4m3); }},
    {"mxfp8", "mx.rceil", [](const BlockStats& s, const TensorScale&) { return mx_rceil(s.amax, kMxE4m3); }},
    {"nvfp4", "nv.two_level", nv_stored},
    {"nvfp4", "nv.ct", nv_stored},
    {"nvfp4", "nv.single", nv_stored},
    {"fp8-block1x128", "fp8.amax",
     [](const BlockStats& s, const TensorScale&) {
       return scale_encode<ScaleType::kF32>(amax_scale(s.amax, kE4m3Max));
     }},
    {"fp8-block1x128", "fp8.ue8m0",
     [](const BlockStats& s, const TensorScale&) { return scale_encode<ScaleType::kF32>(ue8m0_scale(s.amax)); }},
};

std::vector<float> fake_quantized(const FakeRule& fake, const std::vector<float>& x, const TensorScale& tensor) {
  const Format format = parse_format(fake.format);
  const ScaleRule& rule = *parse_rule(fake.rule, format).rule;
  std::vector<float> out;
  for (size_t start = 0; start < x.size(); start += format.block_cols) {
    const std::vector<float> block(x.begin() + static_cast<std::ptrdiff_t>(start),
                                   x.begin() + static_cast<std::ptrdiff_t>(start + format.block_cols));
    const BlockStats stats = stats_of(block);
    const float scale = scale_decode(format.scale, fake.stored(stats, tensor));
    const float effective = effective_scale(scale, tensor.level, tensor.value);
    BlockCoding coding{.divisor = effective, .multiplier = effective};
    coding.low = rule.clamp_low;
    coding.high = rule.clamp_high;
    if (format.zero == ZeroPoint::kCode) {
      coding.zero = static_cast<float>(int4_decode(int4_zero_code(stats.min, scale)));
    }
    for (const float value : block) {
      out.push_back(decode_element(format.element, encode_element(format.element, value, coding), coding));
    }
  }
  return out;
}

TEST(Properties, C87_fake_quantization_is_what_is_stored) {
  for (const FakeRule& fake : kFakeRules) {
    for (const Element element : {Element::kBF16, Element::kF32}) {
      SCOPED_TRACE(std::string(fake.format) + " " + fake.rule);
      const DenseMatrix x = random_matrix(87, 16, 512, element);
      const Quantized packed = quantize(x, parse_format(fake.format), fake.rule);
      const std::vector<float> fake_values = fake_quantized(fake, floats_of(x), packed.matrix.tensor_scale);
      const std::vector<float> stored_values = packed.values();
      for (size_t i = 0; i < stored_values.size(); ++i) {
        ASSERT_EQ(float_bits(fake_values[i]), float_bits(stored_values[i])) << i;
      }
    }
  }
}

// ---- a second time

Quantized quantize_again(const Quantized& first, const char* rule) {
  QuantizeOptions options = options_for(first.matrix.format, rule);
  const std::vector<float> values = first.values();
  const DenseMatrix x = dense_matrix(values, first.matrix.rows, first.matrix.cols, Element::kF32);
  Quantized second;
  second.matrix = EncodedMatrix::make(options.format, x.rows, x.cols);
  second.matrix.tensor_scale = first.matrix.tensor_scale;
  const auto bad =
      Quantizer(options).encode(x.view(), second.matrix.tensor_scale, second.matrix.mutable_view(), nullptr);
  EXPECT_FALSE(bad);
  return second;
}

struct SecondTime {
  const char* format;
  const char* rule;
  ScaleType scale;
};

TEST(Properties, C87_second_time_gives_the_same_bytes) {
  for (const SecondTime& c : {SecondTime{"mxfp4", "mx.even", ScaleType::kE8M0},
                              {"mxfp4", "mx.floor", ScaleType::kE8M0},
                              {"mxfp8", "mx.even", ScaleType::kE8M0},
                              {"mxfp8", "mx.floor", ScaleType::kE8M0},
                              {"int4-g32", "int4.amax7", ScaleType::kBF16},
                              {"int4-g128", "int4.amax7", ScaleType::kF16},
                              {"int4-g32", "int4.extreme8", ScaleType::kBF16},
                              {"nvfp4", "nv.two_level", ScaleType::kE4M3},
                              {"nvfp4", "nv.ct", ScaleType::kE4M3},
                              {"fp8-block", "fp8.amax", ScaleType::kBF16},
                              {"fp8-channel", "fp8.amax", ScaleType::kBF16}}) {
    Format format = parse_format(c.format);
    format.scale = c.scale;
    const Quantized first = quantize(random_matrix(90, 128, 512, Element::kF32), format, c.rule);
    const Quantized second = quantize_again(first, c.rule);
    EXPECT_TRUE(second.matrix.scales == first.matrix.scales) << c.format << c.rule;
    EXPECT_TRUE(second.matrix.codes == first.matrix.codes) << c.format << c.rule;
  }
}

// These may pick a smaller scale the second time, when no code of the upper half was used: values stay.
TEST(Properties, C87_second_time_gives_the_same_values) {
  for (const SecondTime& c : {SecondTime{"mxfp4", "mx.rceil", ScaleType::kE8M0},
                              {"mxfp4", "mx.ceil", ScaleType::kE8M0},
                              {"mxfp8", "mx.rceil", ScaleType::kE8M0},
                              {"fp8-block", "fp8.ue8m0", ScaleType::kF32},
                              {"fp8-block", "fp8.ue8m0", ScaleType::kE8M0},
                              {"fp8-channel", "fp8.ue8m0", ScaleType::kBF16}}) {
    Format format = parse_format(c.format);
    format.scale = c.scale;
    const Quantized first = quantize(random_matrix(91, 128, 512, Element::kF32), format, c.rule);
    EXPECT_EQ(quantize_again(first, c.rule).values(), first.values()) << c.format << c.rule;
  }
}

// ---- cuts, sums, refusals

TEST(Properties, CutsOnBlockRowsChangeNothing) {
  for (const char* name : {"int4-g32", "int4-g32-asym", "mxfp4", "nvfp4", "mxfp8", "fp8-block", "fp8-channel",
                           "fp8-tensor", "fp8-block16x16"}) {
    const Format format = parse_format(name);
    const DenseMatrix x = random_matrix(92, 300, 2080);
    const Quantized whole = quantize(x, format);
    const Quantizer quantizer(options_for(format, ""));
    EncodedMatrix cut = EncodedMatrix::make(format, x.rows, x.cols);
    cut.tensor_scale = whole.matrix.tensor_scale;
    std::vector<ErrorSums> errors(x.rows);
    for (uint64_t row = 0; row < x.rows; row += 128) {
      DenseView part = x.view();
      part.data += row * part.row_stride;
      part.rows = std::min<uint64_t>(128, x.rows - row);
      MutableEncodedView out = cut.mutable_view();
      out.rows = part.rows;
      out.codes += row * format.code_row_bytes(x.cols);
      const uint64_t scale_row = format.block_rows == 0 ? 0 : row / format.block_rows;
      out.scales += scale_row * format.scale_cols(x.cols) * format.scale_bytes();
      if (out.zeros != nullptr) out.zeros += scale_row * format.scale_cols(x.cols);
      ASSERT_FALSE(quantizer.encode(part, cut.tensor_scale, out, errors.data() + row));
    }
    EXPECT_TRUE(cut.codes == whole.matrix.codes) << name;
    EXPECT_TRUE(cut.scales == whole.matrix.scales) << name;
    EXPECT_TRUE(cut.zeros == whole.matrix.zeros) << name;
    for (uint64_t row = 0; row < x.rows; ++row) {
      ASSERT_EQ(errors[row].noise, whole.errors[row].noise) << name;
      ASSERT_EQ(errors[row].signal, whole.errors[row].signal) << name;
    }
  }
}

TEST(Properties, ErrorSumsAreThoseOfTheDecodedValues) {
  for (const char* name : {"int4-g32", "int4-g32-asym", "int4-channel", "mxfp4", "nvfp4", "mxfp8", "fp8-block",
                           "fp8-channel", "fp8-tensor", "int8-g32", "bf16"}) {
    for (const double magnitude : {1.0, 1e-25, 1e25}) {
      DenseMatrix x = random_matrix(93, 33, 544, Element::kF32);
      std::vector<float> values = floats_of(x);
      for (float& value : values) value = static_cast<float>(value * magnitude);
      x = dense_matrix(values, 33, 544, Element::kF32);
      const Quantized result = quantize(x, parse_format(name));
      std::vector<float> decoded = result.values();
      for (uint64_t row = 0; row < 33; ++row) {
        double signal = 0, noise = 0;
        for (uint64_t k = 0; k < 544; ++k) {
          const double value = values[544 * row + k], error = value - decoded[544 * row + k];
          signal += value * value;
          noise += error * error;
        }
        EXPECT_NEAR(result.errors[row].signal, signal, 1e-6 * signal) << name << magnitude;
        EXPECT_NEAR(result.errors[row].noise, noise, 1e-6 * noise) << name << magnitude;
        EXPECT_EQ(result.errors[row].count, 544u);
      }
    }
  }
}

TEST(Properties, FirstBadValueIsReported) {
  for (const char* name : {"int4-g32", "nvfp4", "fp8-block", "fp8-tensor", "fp8-channel", "bf16"}) {
    for (const float bad : {NAN, INFINITY}) {
      std::vector<float> values(300 * 4128, 0.5f);
      values[257 * 4128 + 5] = bad;
      values[130 * 4128 + 4000] = bad;
      values[130 * 4128 + 4001] = bad;
      const DenseMatrix x = dense_matrix(values, 300, 4128);
      const Quantizer quantizer(options_for(parse_format(name), ""));
      EncodedMatrix out = EncodedMatrix::make(parse_format(name), 300, 4128);
      const auto found = quantizer.encode(x.view(), {SecondLevel::kNone, 1.0f}, out.mutable_view(), nullptr);
      ASSERT_TRUE(found) << name;
      EXPECT_EQ(found->row, 130u) << name;
      EXPECT_EQ(found->col, 4000u) << name;
    }
  }
}

TEST(Properties, SecondLevelTakesTheFormThatTheFileNeeds) {
  const DenseMatrix x = dense_matrix(std::vector<float>(64, 3.0f), 1, 64);
  QuantizeOptions options = options_for(parse_format("nvfp4"), "nv.two_level");
  EXPECT_EQ(Quantizer(options).tensor_scale(3.0f), (TensorScale{SecondLevel::kMultiply, 3.0f / 2688.0f}));
  options.second_level = SecondLevel::kDivide;
  EXPECT_EQ(Quantizer(options).tensor_scale(3.0f), (TensorScale{SecondLevel::kDivide, 896.0f}));  // C03
  EXPECT_EQ(quantize(x.view(), options).values(), std::vector<float>(64, 3.0f));
  options.bit_exact = BitExact::kModelOpt;
  EXPECT_THROW(Quantizer{options}, std::exception);
}

TEST(Properties, QuantizerRefusesWhatCannotBe) {
  const Format int4 = parse_format("int4-g32");
  EXPECT_THROW(Quantizer(options_for(parse_format("q4_1"), "")), std::exception);
  EXPECT_THROW(Quantizer(options_for(int4, "int4.amax7", BitExact::kCompressedTensors)), std::exception);
  EXPECT_THROW(Quantizer(options_for(int4, "mse.int4.amax7_5", BitExact::kCompressedTensors)), std::exception);
  EXPECT_THROW(Quantizer(options_for(parse_format("int4-g32-asym"), "int4.asym", BitExact::kModelOpt)), std::exception);
  EXPECT_THROW(Quantizer({.format = parse_format("bf16"), .rule = parse_rule("int4.amax7", int4)}), std::exception);
  EXPECT_EQ(bit_exact_rule(BitExact::kCompressedTensors, int4), "int4.amax7_5");
  EXPECT_EQ(bit_exact_rule(BitExact::kModelOpt, parse_format("int4-g32-asym")), "");
}

TEST(Properties, Float64IsRoundedOnceToShorterTypes) {
  const double x = 1.0 + 0x1p-8 + 0x1p-40;
  const DenseView view{reinterpret_cast<const std::byte*>(&x), Element::kF64, 1, 1, 8};
  uint16_t bf16 = 0;
  convert(view, Element::kBF16, reinterpret_cast<std::byte*>(&bf16));
  EXPECT_EQ(bf16, 0x3f81);
}

TEST(Properties, ColumnGroupsChooseTheScaleColumn) {
  Format format = parse_format("int4-g2-asym");
  EncodedMatrix matrix = EncodedMatrix::make(format, 1, 4);
  matrix.codes = {std::byte{0x98}, std::byte{0xba}};  // codes 8, 9, 10, 11
  const uint16_t scales[] = {bf16_encode(1.0f), bf16_encode(16.0f)};
  std::memcpy(matrix.scales.data(), scales, 4);
  matrix.zeros = {8, 4};
  matrix.column_group = {1, 0, 1, 0};
  std::vector<float> values(4);
  decode(matrix, values);
  EXPECT_EQ(values, (std::vector<float>{64, 1, 96, 3}));
}

TEST(Properties, RowPhaseCutsScalesOutOfALargerMatrix) {
  const DenseMatrix x = random_matrix(94, 300, 256);
  const Quantized whole = quantize(x, parse_format("fp8-block"));
  const std::vector<float> values = whole.values();
  EncodedView part = whole.matrix.view();
  part.rows = 150;
  part.row_phase = 100;
  part.codes += uint64_t{100} * 256;
  std::vector<float> cut(150 * 256);
  decode(part, cut.data(), 256);
  EXPECT_TRUE(std::equal(cut.begin(), cut.end(), values.begin() + 100 * 256));
}

}  // namespace
}  // namespace nibble
