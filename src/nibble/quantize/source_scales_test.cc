// Scales and codes that cannot be meant are refused on every route, and those that are meant are not (FORMATS.md
// §11.8).
#include "nibble/quantize/source_scales.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "nibble/base/log.h"
#include "nibble/models/model.h"
#include "nibble/numerics/codec/f16.h"
#include "nibble/numerics/decode.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using testing::thrown_error;
using testing::TinyCheckpoint;
using testing::value_of;

constexpr const char* kNothing = "(nothing was thrown)";
constexpr const char* kNotPositive = "a scale of the source is not positive";
const std::string kModule = "model.layers.1.mlp.experts.2.up_proj.";

class SourceScales : public ::testing::Test {
 protected:
  void SetUp() override { log::set_level(log::Level::kOff); }

  struct Options {
    std::string layout, rule, keep, generic;
  };

  // What quantizing `source` throws.
  Error quantized(const Path& source, const std::string& format, const Options& options) const {
    std::filesystem::remove_all(dir_ / "target");
    QuantizeRequest request;
    request.source = source;
    request.target = dir_ / "target";
    request.format = parse_format(format);
    if (!request.format.is_dense())
      request.rule = options.rule.empty() ? default_rule(request.format) : parse_rule(options.rule, request.format);
    request.rule_given = !options.rule.empty();
    request.layout = options.layout;
    if (!options.keep.empty()) request.keep = {options.keep};
    if (!options.generic.empty()) request.generic = {options.generic};
    request.quiet = true;
    return thrown_error([&] { quantize(request); });
  }

  Error quantized(const TinyCheckpoint& source, const std::string& format) const {
    return quantized(source, format, Options());
  }
  Error quantized(const TinyCheckpoint& source, const std::string& format, const Options& options) const {
    std::filesystem::remove_all(dir_ / "source");
    source.write(dir_ / "source");
    return quantized(dir_ / "source", format, options);
  }

  static TinyCheckpoint tiny(const std::string& layout, const std::string& format) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize(layout, format);
    return tiny;
  }

  // The value at `at` of a dense tensor.
  static void set_value(TinyCheckpoint* tiny, const std::string& name, size_t at, float value) {
    std::vector<float> values = tiny->values(name);
    values.at(at) = value;
    tiny->set_values(name, values);
  }

  testing::TempDir dir_;
};

TEST_F(SourceScales, OfIntegersArePositive) {
  for (const char* format : {"int4-g32", "int4-g32-asym"}) {
    for (const float value : {-1.0f, 0.0f, -0.0f}) {
      TinyCheckpoint source = tiny("compressed-tensors", format);
      set_value(&source, kModule + "weight_scale", 3, value);
      for (const char* target : {"bf16", "int4-g32", "int4-g32-asym", "mxfp4", "nvfp4", "fp8-channel"}) {
        const Error error = quantized(source, target);
        EXPECT_EQ(error.message(), kNotPositive) << format << " " << value << " to " << target;
        EXPECT_EQ(error.tensor(), kModule + "weight_scale");
        EXPECT_EQ(value_of(error, "row"), "1");  // two scales a row
        EXPECT_EQ(value_of(error, "column"), "1");
      }
    }
  }
}

// The two layouts with words along the other axis.
TEST_F(SourceScales, OfLinearCheckpointsArePositive) {
  for (const char* model : {"linear_awq", "linear_gptq", "linear_gptq_act_order"}) {
    const TinyCheckpoint whole = TinyCheckpoint::load(testing::golden_dir() / "models" / model);
    const std::vector<std::string> scales = whole.matching("*scales");
    ASSERT_FALSE(scales.empty());
    for (const float value : {-0.01f, 0.0f}) {
      TinyCheckpoint source = whole;
      set_value(&source, scales.front(), 5, value);
      for (const char* target : {"bf16", "int4-g128-asym", "mxfp4"}) {
        const Error error = quantized(source, target, {.layout = "", .rule = "", .keep = "", .generic = ".*"});
        EXPECT_EQ(error.message(), kNotPositive) << model << " " << value << " to " << target;
        EXPECT_EQ(error.tensor(), scales.front());
      }
    }
    EXPECT_EQ(quantized(whole, "bf16").message(), kNothing) << model;
  }
}

// Of the rule that makes the extreme of a block -8: half of its scales are negative, and meant.
TEST_F(SourceScales, AreNegativeWhereTheRuleMeansIt) {
  ASSERT_EQ(quantized(TinyCheckpoint::qwen3_moe(), "int4-g32",
                      {.layout = "", .rule = "int4.extreme8", .keep = "", .generic = ""})
                .message(),
            kNothing);
  const TinyCheckpoint source = TinyCheckpoint::load(dir_ / "target");
  const std::vector<float> scales = source.values(kModule + "weight_scale");
  EXPECT_GT(std::ranges::count_if(scales, [](float scale) { return scale < 0; }), 10);
  for (const char* target : {"bf16", "int4-g32", "mxfp4"})
    EXPECT_EQ(quantized(source, target).message(), kNothing) << target;
  // Under other rules some blocks do not reach it.
  TinyCheckpoint turned = tiny("compressed-tensors", "int4-g32");
  turned.scale_values(kModule + "weight_scale", -1.0f);
  for (const char* target : {"bf16", "int4-g32", "mxfp4"})
    EXPECT_EQ(quantized(turned, target).message(), kNotPositive) << target;
}

// In the container of ggml: its own type for symmetric nibbles alone has scales of both signs, and all write zero.
TEST_F(SourceScales, OfGguf) {
  const Path golden = testing::golden_dir() / "models/llama_gguf/model.gguf";
  const Checkpoint whole = Checkpoint::open(golden, {});
  Findings findings;
  const Model model = load_model(whole, &findings);
  size_t refused = 0;
  size_t taken = 0;
  for (const Weight& weight : model.table.weights()) {
    if (weight.opaque || weight.format.is_dense() || weight.format.scale_bytes() == 1) continue;
    const StoredTensor& tensor = whole.tensors()[weight.parts.front().tensor];
    const bool signs = weight.format.element == Element::kInt4;
    for (const float value : {-1.0f, 0.0f}) {
      std::string content = read_text(golden, UINT64_MAX);
      const uint16_t half = f16_encode(value);
      std::memcpy(content.data() + tensor.offset, &half, sizeof(half));
      write_atomically(dir_ / "model.gguf", content);
      const bool meant = value == 0 || signs;
      EXPECT_EQ(quantized(dir_ / "model.gguf", "bf16", {}).message(), meant ? kNothing : kNotPositive)
          << weight.format.name << " " << value;
      ++(meant ? taken : refused);
    }
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(taken, 0u);
}

TEST_F(SourceScales, OfKeptWeightsAreLookedAtToo) {
  struct Case {
    const char *layout, *format, *part;
  };
  for (const Case& c :
       {Case{"compressed-tensors", "nvfp4", "weight_scale"}, Case{"compressed-tensors", "mxfp8", "weight_scale"},
        Case{"compressed-tensors", "int4-g32", "weight_scale"}, Case{"compressed-tensors", "fp8-block", "weight_scale"},
        Case{"deepseek", "fp8-block", "weight_scale_inv"}}) {
    const Options keep{.layout = c.layout, .rule = "", .keep = "name:" + kModule + "weight", .generic = ""};
    TinyCheckpoint source = tiny(c.layout, c.format);
    EXPECT_EQ(quantized(source, c.format, keep).message(), kNothing) << c.layout << " " << c.format;
    auto& scales = source.at(kModule + c.part).data;
    std::fill(scales.begin(), scales.end(), std::byte{0xFF});  // no number in any type of scale
    const Error error = quantized(source, c.format, keep);
    EXPECT_EQ(error.message(), "a scale of the source is no number") << c.layout << " " << c.format;
    EXPECT_EQ(error.tensor(), kModule + c.part);
    EXPECT_FALSE(std::filesystem::exists(dir_ / "target"));
  }
}

TEST_F(SourceScales, CodesThatAreNoNumbersAreRefusedOnEveryRoute) {
  for (const char* format : {"fp8-block", "fp8-channel", "fp8-tensor", "mxfp8"}) {
    for (const auto& [byte, good] : {std::pair{0x7F, false}, {0xFF, false}, {0x7E, true}, {0xFE, true}}) {
      TinyCheckpoint source = tiny("compressed-tensors", format);
      source.at(kModule + "weight").data.at(64 * 5 + 9) = static_cast<std::byte>(byte);
      const Options keep{.layout = "compressed-tensors", .rule = "", .keep = "name:" + kModule + "*", .generic = ""};
      for (const Options& options : {Options(), keep}) {
        for (const char* target : {format, "bf16", "mxfp4"}) {
          if (parse_format(target).is_dense() && !options.layout.empty()) continue;
          const Error error = quantized(source, target, options);
          EXPECT_EQ(error.message(), good ? kNothing : "a weight is not a number") << format << " to " << target;
          if (good) continue;
          EXPECT_EQ(value_of(error, "row"), "5");
          EXPECT_EQ(value_of(error, "column"), "9");
          EXPECT_EQ(error.tensor(), kModule + "weight");
        }
      }
    }
  }
}

// A tiny scale's own rounding moves the extreme: 7.2e-7 under 2 units of binary16 (for 1.5) is -6, not -8.
TEST(FindBadScale, ScalesOfFewBits) {
  Format format = parse_format("int4-g32");
  format.scale = ScaleType::kF16;
  EncodedMatrix matrix = EncodedMatrix::make(format, 1, 32);
  std::ranges::fill(matrix.codes, std::byte{0x28});
  for (const auto& [bits, bad] : {std::pair<uint16_t, bool>{0x8001, false}, {0x8002, false}, {0x8010, true}}) {
    std::memcpy(matrix.scales.data(), &bits, sizeof(bits));
    EXPECT_EQ(find_bad_scale(matrix, Container::kSafetensors).has_value(), bad) << bits;
  }
}

// Readers of the layouts that are written take a scale of zero for a fault.
TEST(ReplaceZeroScales, KeepsTheValues) {
  for (const ScaleType type : {ScaleType::kF16, ScaleType::kBF16, ScaleType::kF32}) {
    Format format = parse_format("int4-g32");
    format.scale = type;
    EncodedMatrix matrix = EncodedMatrix::make(format, 2, 64);
    for (size_t i = 0; i < matrix.codes.size(); ++i) matrix.codes.data()[i] = static_cast<std::byte>(i * 37);
    const uint64_t width = format.scale_bytes();
    const std::vector<float> scales{1.5f, -0.0f, 0.0f, -2.0f};
    for (size_t i = 0; i < scales.size(); ++i) {
      const uint32_t bits = type == ScaleType::kF16    ? f16_encode(scales[i])
                            : type == ScaleType::kBF16 ? float_bits(scales[i]) >> 16
                                                       : float_bits(scales[i]);
      std::memcpy(matrix.scales.data() + i * width, &bits, width);
    }
    std::vector<float> before(128);
    std::vector<float> after(128);
    decode(matrix, before);
    EXPECT_TRUE(find_bad_scale(matrix, Container::kSafetensors));
    EXPECT_FALSE(find_bad_scale(matrix, Container::kGguf));
    replace_zero_scales(&matrix);
    decode(matrix, after);
    EXPECT_EQ(after, before);
    const auto bad = find_bad_scale(matrix, Container::kSafetensors);
    EXPECT_TRUE(!bad || bad->value == -2.0f);
    EXPECT_EQ(matrix.codes.data()[16], std::byte{0x88});
    EXPECT_EQ(scale_value(type, matrix.scales.data() + width), 1.0f);
  }
}

// Columns of a block that lie apart.
TEST(FindBadScale, GroupsOutOfOrder) {
  EncodedMatrix matrix = EncodedMatrix::make(parse_format("int4-g32"), 1, 64);
  std::ranges::fill(matrix.codes, std::byte{0x88});
  const std::array<uint16_t, 2> scales{0x3F80, 0xBF80};  // 1, -1 in BF16
  std::memcpy(matrix.scales.data(), scales.data(), sizeof(scales));
  matrix.codes.data()[10] = std::byte{0x08};  // column 21 is -8
  ASSERT_TRUE(find_bad_scale(matrix, Container::kSafetensors));
  EXPECT_EQ(find_bad_scale(matrix, Container::kSafetensors)->column, 1u);
  EXPECT_FALSE(find_bad_scale(matrix, Container::kGguf));
  for (uint32_t k = 0; k < 64; ++k) matrix.column_group.push_back(k % 2);
  EXPECT_FALSE(find_bad_scale(matrix, Container::kSafetensors));
  matrix.codes.data()[10] = std::byte{0x80};  // column 20, of the other group
  EXPECT_TRUE(find_bad_scale(matrix, Container::kSafetensors));
}

}  // namespace
}  // namespace nibble
