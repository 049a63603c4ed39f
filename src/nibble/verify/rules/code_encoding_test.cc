#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/base/log.h"
#include "nibble/base/rng.h"
#include "nibble/verify/rederive_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

constexpr const char* kLayout = "compressed-tensors";

TinyCheckpoint wider() {  // 64 x 128: enough codes in one weight
  TinyOptions options;
  options.hidden = 128;
  options.intermediate = 64;
  return TinyCheckpoint::qwen3_moe(options);
}

TEST(CodeEncoding, OffsetBinaryPasses) {
  for (const char* format : {"int4-g32", "int4-g128", "int4-g32-asym", "int4-channel"}) {
    TinyCheckpoint tiny = wider();
    if (std::string_view(format) == "int4-g128") {
      tiny.quantize(kLayout, format, "*.mlp.experts.*.gate_proj.weight");
    } else {
      tiny.quantize(kLayout, format);
    }
    const VerifyReport report = verify_tiny(tiny);
    EXPECT_TRUE(of_rule(report, "code-encoding").empty()) << format << text_of(report.findings);
  }
}

TEST(CodeEncoding, TwosComplementIsProvedFromTheHistogram) {
  TinyCheckpoint tiny = wider();
  tiny.quantize(kLayout, "int4-g32");
  const std::string name = "model.layers.0.mlp.experts.2.down_proj.weight_packed";
  for (std::byte& b : tiny.at(name).data) b ^= std::byte{0x88};
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "code-encoding");
  ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(found[0].tensor, name);
  EXPECT_GT(std::stod(value_of(found[0], "ends_percent")), 40);
}

TEST(CodeEncoding, WithZeroPointsTheFlippedOnesAreNamed) {
  TinyCheckpoint good = wider();
  good.quantize(kLayout, "int4-g32-asym");
  const std::string module = "model.layers.0.mlp.experts.2.down_proj.";
  for (const auto& [codes, zeros] : {std::pair(true, false), std::pair(false, true), std::pair(true, true)}) {
    TinyCheckpoint tiny = good;
    const auto flip = [&](const char* part) {
      for (std::byte& b : tiny.at(module + part).data) b ^= std::byte{0x88};
    };
    if (codes) flip("weight_packed");
    if (zeros) flip("weight_zero_point");
    const VerifyReport report = verify_tiny(tiny);
    const Findings found = of_rule(report, "code-encoding");
    ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
    EXPECT_EQ(found[0].severity, Severity::kError);
    EXPECT_EQ(found[0].tensor, module + (codes ? "weight_packed" : "weight_zero_point"));
    EXPECT_EQ(value_of(found[0], "flipped"), codes && zeros ? "codes and zero points"
                                             : codes        ? "codes"
                                                            : "zero points");
  }
}

TEST(CodeEncoding, WeightsOfOneSignWithZeroPointsCannotDecide) {
  TinyCheckpoint tiny = wider();
  const std::string name = "model.layers.0.mlp.experts.2.down_proj.weight";
  std::vector<float> values = tiny.values(name);
  for (float& value : values) value = std::fabs(value);
  tiny.set_values(name, values);
  tiny.quantize(kLayout, "int4-g32-asym");
  const Findings found = of_rule(verify_tiny(tiny), "code-encoding");
  ASSERT_EQ(found.size(), 1u) << text_of(found);
  EXPECT_EQ(found[0].severity, Severity::kNote);
  EXPECT_EQ(value_of(found[0], "weights"), "1");
}

TEST(CodeEncoding, ZeroPointOffByOne) {
  TinyCheckpoint tiny = wider();
  tiny.quantize(kLayout, "int4-g32-asym");
  const std::string name = "model.layers.0.mlp.experts.2.down_proj.weight_zero_point";
  for (std::byte& b : tiny.at(name).data) {
    // Minus one in both nibbles, as versions of a layout differ by.
    const auto low = static_cast<uint8_t>((static_cast<uint8_t>(b) & 15) - 1) & 15;
    const auto high = static_cast<uint8_t>((static_cast<uint8_t>(b) >> 4) - 1) & 15;
    b = static_cast<std::byte>(low | high << 4);
  }
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "code-encoding");
  ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
  EXPECT_EQ(found[0].tensor, name);
}

// Half a step is the weights' own mean, or that of weights of mean zero under zero points of another version.
TEST(CodeEncoding, AStepThatTheMeanMayHideIsNoted) {
  for (const bool shifted_zeros : {false, true}) {
    TinyCheckpoint tiny = wider();
    const std::string name = "model.layers.0.mlp.experts.2.down_proj.weight";
    std::vector<float> values = tiny.values(name);
    for (float& value : values) value += 0.008f;  // of steps of 0.015
    tiny.set_values(name, values);
    tiny.quantize(kLayout, "int4-g32-asym");
    if (shifted_zeros) {
      for (std::byte& b : tiny.at(name + "_zero_point").data) {
        const auto low = static_cast<uint8_t>((static_cast<uint8_t>(b) & 15) - 1) & 15;
        const auto high = static_cast<uint8_t>((static_cast<uint8_t>(b) >> 4) - 1) & 15;
        b = static_cast<std::byte>(low | high << 4);
      }
    }
    const Findings found = of_rule(verify_tiny(tiny), "code-encoding");
    ASSERT_EQ(found.size(), 1u) << text_of(found);
    EXPECT_EQ(found[0].severity, Severity::kNote);
    EXPECT_NEAR(std::stod(value_of(found[0], "steps")), shifted_zeros ? 1.5 : 0.5, 0.2);
  }
}

TEST(CodeEncoding, ZeroPointsThatHaveNothingToDoWithTheCodesDecideNothing) {
  TinyCheckpoint tiny = wider();
  tiny.quantize(kLayout, "int4-g32-asym");
  auto& zeros = tiny.at("model.layers.0.mlp.experts.2.down_proj.weight_zero_point").data;
  for (size_t i = 0; i < zeros.size(); ++i) zeros[i] = static_cast<std::byte>(i * 37);
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "code-encoding").empty());
}

// Weights that are what they are: none of these shapes proves another encoding.
TEST(CodeEncoding, OddWeightsAreNotCalledWrong) {
  const std::string name = "model.layers.0.mlp.experts.2.down_proj.weight";
  struct Odd {
    const char* what;
    float (*value)(float x, uint64_t i);
  };
  for (const Odd& odd : {Odd{"pruned", [](float x, uint64_t i) { return random_bits(5, i) % 10 == 0 ? x : 0.0f; }},
                         Odd{"ternary", [](float x, uint64_t) { return x > 0.02f    ? 0.1f
                                                                       : x < -0.02f ? -0.1f
                                                                                    : 0.0f; }},
                         Odd{"two values", [](float x, uint64_t) { return x > 0 ? 0.1f : -0.1f; }},
                         Odd{"outliers", [](float x, uint64_t i) { return random_bits(6, i) % 64 == 0 ? 40 * x : x; }},
                         Odd{"skewed", [](float x, uint64_t) { return std::exp(12 * x) - 1; }}}) {
    for (const char* format : {"int4-g32", "int4-g32-asym", "int4-g64", "int4-g64-asym"}) {
      TinyCheckpoint tiny = wider();
      std::vector<float> values = tiny.values(name);
      for (uint64_t i = 0; i < values.size(); ++i) values[i] = odd.value(values[i], i);
      tiny.set_values(name, values);
      tiny.quantize(kLayout, format);
      for (const Finding& finding : of_rule(verify_tiny(tiny), "code-encoding"))
        EXPECT_NE(finding.severity, Severity::kError) << odd.what << " " << format << ": " << finding.message;
    }
  }
}

// Blocks of another program's four-bit values are nearly uniform, and the search for scales cuts off their ends.
TEST(CodeEncoding, EvenWeightsWithCutOffEndsAreNotCalledWrong) {
  log::set_level(log::Level::kOff);
  for (const char* format : {"int4-g32-asym", "int4-g32"}) {
    const TempDir dir;
    QuantizeRequest request =
        request_for(golden_dir() / "models" / "llama_gguf" / "model.gguf", dir / "target", format);
    request.rule = parse_rule("mse." + default_rule(request.format).name(), request.format);
    quantize(request);
    std::filesystem::remove(dir / "target" / "nibble.json");
    for (const Finding& finding : of_rule(verify_quietly(dir / "target"), "code-encoding"))
      EXPECT_NE(finding.severity, Severity::kError) << format << ": " << finding.message;
  }
}

TEST(CodeEncoding, AMeanThatIsNotZeroIsNoErrorWithoutZeroPoints) {
  TinyCheckpoint tiny = wider();
  const std::string name = "model.layers.0.mlp.experts.2.down_proj.weight";
  std::vector<float> values = tiny.values(name);
  for (float& value : values) value += 0.02f;
  tiny.set_values(name, values);
  tiny.quantize(kLayout, "int4-g32");
  for (const Finding& finding : of_rule(verify_tiny(tiny), "code-encoding"))
    EXPECT_NE(finding.severity, Severity::kError) << finding.message;
}

TEST(CodeEncoding, UniformCodesCannotDecide) {
  TinyCheckpoint tiny = wider();
  tiny.quantize(kLayout, "int4-g32");
  auto& codes = tiny.at("model.layers.0.mlp.experts.2.down_proj.weight_packed").data;
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i);
  const Findings found = of_rule(verify_tiny(tiny), "code-encoding");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kNote);
}

}  // namespace
}  // namespace nibble
