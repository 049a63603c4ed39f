#include "nibble/numerics/scale_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "nibble/base/error.h"
#include "nibble/numerics/quantize_for_test.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;

TEST(ScaleRule, DefaultsAreThoseOfTheCommandLine) {
  for (const auto& [format, rule] :
       {std::pair{"int4-g32", "int4.amax7_5"}, std::pair{"int4-g32-asym", "int4.asym"}, std::pair{"mxfp4", "mx.even"},
        std::pair{"mxfp8", "mx.even"}, std::pair{"nvfp4", "nv.two_level"}, std::pair{"fp8-block", "fp8.amax"},
        std::pair{"fp8-tensor", "fp8.amax"}, std::pair{"bf16", ""}, std::pair{"q4_k", ""}}) {
    EXPECT_EQ(default_rule(parse_format(format)).name(), rule) << format;
  }
}

TEST(ScaleRule, NamesApplyToTheirFormatsAlone) {
  std::set<std::string_view> names;
  for (const ScaleRule* rule : scale_rules()) {
    EXPECT_TRUE(names.insert(rule->name).second);
    EXPECT_FALSE(rule->summary.empty());
  }
  for (const char* name :
       {"int4.amax7_5", "int4.amax7", "int4.asym", "int4.extreme8", "mx.even", "mx.floor", "mx.rceil", "mx.ceil",
        "nv.two_level", "nv.ct", "nv.four_six", "nv.single", "fp8.amax", "fp8.ue8m0"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_EQ(parse_rule("mse.mx.floor", parse_format("mxfp4")).name(), "mse.mx.floor");
  EXPECT_THROW(parse_rule("mx.even", parse_format("nvfp4")), Error);
  EXPECT_THROW(parse_rule("int4.amax7", parse_format("int4-g32-asym")), Error);
  EXPECT_THROW(parse_rule("fp8.amax", parse_format("mxfp8")), Error);
  EXPECT_EQ(parse_rule("mse.fp8.amax", parse_format("fp8-tensor")).name(), "mse.fp8.amax");
  EXPECT_THROW(parse_rule("anything", parse_format("bf16")), Error);
  try {
    parse_rule("mx.evn", parse_format("mxfp4"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("mx.evn"));
    EXPECT_THAT(error.ways_out().at(0), HasSubstr("use one of: mx.even, "));
  }
}

// Every format that has rules, under every name of a rule that applies.
std::vector<QuantizeOptions> all_combinations() {
  std::vector<QuantizeOptions> all;
  for (const char* name : {"int4-g16", "int4-g32", "int4-g128-asym", "int4-channel", "mxfp4", "nvfp4", "mxfp8",
                           "fp8-block", "fp8-block32x32", "fp8-channel", "fp8-tensor", "int8-g32"}) {
    for (const ScaleType scale : {ScaleType::kF32, ScaleType::kBF16, ScaleType::kF16, ScaleType::kE8M0}) {
      Format format = parse_format(name);
      const bool free = format.scale != ScaleType::kE8M0 && format.scale != ScaleType::kE4M3;
      if (free) format.scale = scale;
      if (!free && scale != ScaleType::kF32) continue;
      for (const ScaleRule* rule : scale_rules()) {
        if (!rule->applies(format)) continue;
        all.push_back({.format = format, .rule = {rule, false}});
        if (format.block_rows != 0) all.push_back({.format = format, .rule = {rule, true}});
      }
    }
  }
  return all;
}

std::string named(const QuantizeOptions& options) {
  return options.format.name + " " + std::string(scale_type_name(options.format.scale)) + " " + options.rule.name();
}

TEST(ScaleRule, EveryCombinationHandlesExtremeBlocks) {
  const float kMagnitudes[] = {0.0f,  0x1p-149f, 0x1p-140f, 1e-38f, 0x1p-126f, 1e-30f,   1e-20f,
                               1e-8f, 1.0f,      65504.0f,  1e10f,  1e30f,     kBf16Max, kFloatMax};
  for (const QuantizeOptions& options : all_combinations()) {
    std::vector<float> values;
    for (const float magnitude : kMagnitudes) {
      for (uint64_t k = 0; k < 128; ++k) {
        const double factor = k == 5 ? 1 : k == 9 ? -1 : 2 * random_uniform(1, k) - 1;
        values.push_back(static_cast<float>(magnitude * factor));
      }
    }
    // One row at a time, so that a second level is made for that magnitude.
    for (uint64_t row = 0; row < std::size(kMagnitudes); ++row) {
      SCOPED_TRACE(named(options) + " " + std::to_string(kMagnitudes[row]));
      const std::vector<float> x(values.begin() + static_cast<std::ptrdiff_t>(128 * row),
                                 values.begin() + static_cast<std::ptrdiff_t>(128 * row + 128));
      const Quantized result = quantize(dense_matrix(x, 1, 128, Element::kF32).view(), options);
      const uint64_t size = options.format.scale_bytes();
      for (size_t i = 0; i < result.matrix.scales.size(); i += size) {
        const float scale = scale_value(options.format.scale, result.matrix.scales.data() + i);
        ASSERT_TRUE(std::isfinite(scale) && scale != 0);
        ASSERT_TRUE(scale > 0 || options.rule.rule->name == "int4.extreme8");
      }
      ASSERT_TRUE(std::isfinite(result.matrix.tensor_scale.value) && result.matrix.tensor_scale.value > 0);
      for (const float value : result.values()) {
        ASSERT_FALSE(std::isnan(value));
        ASSERT_TRUE(kMagnitudes[row] != 0 || float_bits(value) == 0);
      }
    }
  }
}

TEST(ScaleRule, ManyBlocksAtOnceGetWhatOneBlockGets) {
  for (const QuantizeOptions& options : all_combinations()) {
    const ScaleRule& rule = *options.rule.rule;
    std::vector<float> amax(1000), min(1000), max(1000), extreme(1000);
    for (uint64_t i = 0; i < amax.size(); ++i) {
      amax[i] = i % 50 == 0 ? 0.0f : bits_float(static_cast<uint32_t>(random_bits(2, i) % kFloatInf));
      min[i] = -amax[i] * static_cast<float>(random_uniform(3, i));
      max[i] = amax[i];
      extreme[i] = i % 2 == 0 ? amax[i] : -amax[i];
    }
    const TensorScale tensor =
        rule.tensor_scale == nullptr ? TensorScale{} : rule.tensor_scale(options.format, 3.0f, SecondLevel::kNone);
    std::vector<uint32_t> stored(amax.size());
    std::vector<float> value(amax.size());
    std::vector<uint8_t> zero(amax.size());
    rule.block_scales(options.format, {amax.data(), min.data(), max.data(), extreme.data()}, amax.size(), tensor,
                      {stored.data(), value.data(), zero.data()});
    for (size_t i = 0; i < amax.size(); ++i) {
      const BlockStats stats{amax[i], min[i], max[i], extreme[i]};
      const BlockScale one = rule.block_scale(options.format, stats, tensor);
      ASSERT_EQ(stored[i], one.stored) << named(options) << amax[i];
      ASSERT_EQ(float_bits(value[i]), float_bits(one.value)) << named(options) << amax[i];
      ASSERT_EQ(value[i], scale_decode(options.format.scale, stored[i])) << named(options);
      ASSERT_EQ(zero[i], one.zero) << named(options);
      ASSERT_EQ(one.clamp_low, rule.clamp_low);
      ASSERT_EQ(one.clamp_high, rule.clamp_high);
    }
  }
}

TEST(ScaleRule, SearchIsNeverWorseThanItsRuleAndOftenBetter) {
  const DenseMatrix x = random_matrix(21, 64, 256);
  for (const QuantizeOptions& options : all_combinations()) {
    if (!options.rule.mse) continue;
    QuantizeOptions plain = options;
    plain.rule.mse = false;
    const Quantized searched = quantize(x.view(), options), ruled = quantize(x.view(), plain);
    // Blocks of one row: compare each, not only the sum.
    if (options.format.block_rows == 1 && options.format.block_cols == 0) {
      for (uint64_t row = 0; row < 64; ++row) {
        ASSERT_LE(searched.errors[row].noise, ruled.errors[row].noise) << named(options);
      }
    }
    ASSERT_LE(searched.total().noise, ruled.total().noise) << named(options);
    const bool whole_fp8 = options.format.element == Element::kE4M3 || options.format.element == Element::kInt8;
    if (!whole_fp8) {
      EXPECT_LT(searched.total().noise, ruled.total().noise) << named(options);
    }
  }
}

// A search that left the powers of two would write scales that DeepSeek's loaders cannot hold.
TEST(ScaleRule, TheSearchOfAPowerOfTwoRuleStaysOne) {
  const DenseMatrix x = random_matrix(21, 64, 160);
  for (const char* name : {"fp8-block32x32", "fp8-channel", "fp8-tensor"}) {
    const Format format = parse_format(name);
    const Quantized searched = quantize(x, format, "mse.fp8.ue8m0"), ruled = quantize(x, format, "fp8.ue8m0");
    EXPECT_LE(searched.total().noise, ruled.total().noise) << name;
    std::vector<float> scales(searched.matrix.scales.size() / sizeof(float));
    std::memcpy(scales.data(), searched.matrix.scales.data(), searched.matrix.scales.size());
    if (scales.empty()) scales.push_back(searched.matrix.tensor_scale.value);
    for (const float scale : scales) {
      int exponent = 0;
      EXPECT_EQ(std::frexp(scale, &exponent), 0.5f) << name << " " << scale;
    }
  }
}

// mse.mx.*: brute force over all 255 scales cannot beat the search's three by more than its documented reach, and finds
// the same scale whenever that scale is among the three.
TEST(ScaleRule, SearchFindsTheBestOfItsCandidates) {
  const Format format = parse_format("mxfp4");
  const DenseMatrix x = random_matrix(22, 200, 32, Element::kF32);
  const Quantized searched = quantize(x, format, "mse.mx.even"), ruled = quantize(x, format, "mx.even");
  std::vector<float> values(size_t{200} * 32);
  std::memcpy(values.data(), x.bytes.data(), x.bytes.size());
  for (uint64_t row = 0; row < 200; ++row) {
    const auto middle = static_cast<int>(ruled.matrix.scales[row]);
    int best = middle;
    double least = INFINITY;
    for (const int code : {middle, middle - 1, middle + 1}) {
      const float scale = e8m0_decode(static_cast<uint8_t>(code));
      double noise = 0;
      for (uint64_t k = 0; k < 32; ++k) {
        const double error = values[32 * row + k] - e2m1_decode(e2m1_encode(values[32 * row + k] / scale)) * scale;
        noise += error * error;
      }
      if (noise < least) best = code;
      least = std::min(least, noise);
    }
    EXPECT_EQ(static_cast<int>(searched.matrix.scales[row]), best) << row;
  }
}

// One scale for the matrix: the caller is given all that are to be tried. Here the rule's puts nearly all weights
// halfway between two codes.
TEST(ScaleRule, OneScaleForTheMatrixIsSearchedToo) {
  const Format format = parse_format("fp8-tensor");
  const float amax = 1.0f;
  std::vector<float> values(size_t{96} * 160, 1.0625f * 128 / 448);
  values[0] = amax;
  const DenseMatrix x = dense_matrix(values, 96, 160, Element::kF32);
  const Quantizer searching(options_for(format, "mse.fp8.amax"));
  const TensorScale chosen = searching.tensor_scale(amax);
  const auto candidates = searching.tensor_scale_candidates(chosen);
  ASSERT_EQ(candidates.size(), 17u);
  EXPECT_EQ(candidates[0].value, amax / 448.0f);
  EXPECT_EQ(candidates[1].value, amax / 448.0f * (31.0f / 32.0f));
  EXPECT_EQ(candidates[16].value, amax / 448.0f * 0.5f);
  const Quantized searched = quantize(x, format, "mse.fp8.amax"), ruled = quantize(x, format, "fp8.amax");
  EXPECT_LT(searched.total().noise, 0.5 * ruled.total().noise);
  double least = ruled.total().noise;
  for (const TensorScale& scale : candidates) {
    const Quantized one = quantize(x.view(), searching, scale);
    float stored = 0;
    std::memcpy(&stored, one.matrix.scales.data(), sizeof stored);
    EXPECT_EQ(stored, scale.value);
    least = std::min(least, one.total().noise);
  }
  EXPECT_EQ(searched.total().noise, least);
  const Quantizer plain(options_for(format, "fp8.amax"));
  EXPECT_EQ(plain.tensor_scale_candidates(chosen).size(), 1u);
  const Quantizer two_level(options_for(parse_format("nvfp4"), "mse.nv.two_level"));
  EXPECT_EQ(two_level.tensor_scale_candidates(two_level.tensor_scale(1.0f)).size(), 1u);  // its blocks are searched
}

}  // namespace
}  // namespace nibble
