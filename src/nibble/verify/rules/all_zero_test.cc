#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

void fill_zero(TinyTensor& tensor) { std::fill(tensor.data.begin(), tensor.data.end(), std::byte{0}); }

TEST(AllZero, C55_router_that_was_never_filled) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "all-zero").empty());
  fill_zero(tiny.at("model.layers.1.mlp.gate.weight"));
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "all-zero");
  ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(found[0].tensor, "model.layers.1.mlp.gate.weight");
  EXPECT_EQ(value_of(found[0], "shape"), "[4, 64]");
  EXPECT_FALSE(report.ok);
}

TEST(AllZero, VectorsAreNoted) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  fill_zero(tiny.at("model.layers.0.input_layernorm.weight"));
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "all-zero");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kNote);
  EXPECT_TRUE(report.ok);
}

TEST(AllZero, NegativeZerosAreZeros) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  auto& data = tiny.at("model.layers.1.mlp.gate.weight").data;
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i % 2 == 0 ? 0 : 0x80);
  EXPECT_EQ(of_rule(verify_tiny(tiny), "all-zero").size(), 1u);
}

TEST(AllZero, QuantizedMatricesOfEveryFormat) {
  const std::string name = "model.layers.0.mlp.experts.3.down_proj.weight";
  for (const char* format : {"int4-g32", "int4-g32-asym", "mxfp4", "nvfp4", "mxfp8", "fp8-block", "fp8-channel"}) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    fill_zero(tiny.at(name));
    tiny.quantize("compressed-tensors", format);
    const Findings found = of_rule(verify_tiny(tiny), "all-zero");
    ASSERT_EQ(found.size(), 1u) << format;
    EXPECT_EQ(found[0].severity, Severity::kError) << format;
    EXPECT_EQ(found[0].tensor, name) << format;
  }
}

TEST(AllZero, OneExpertOfAStack) {
  TinyCheckpoint tiny = TinyCheckpoint::gpt_oss();
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "all-zero").empty());
  auto& data = tiny.at("model.layers.1.mlp.experts.down_proj").data;
  std::fill(data.begin() + 2 * 32 * 64 * 2, data.begin() + 3 * 32 * 64 * 2, std::byte{0});
  const Findings dense = of_rule(verify_tiny(tiny), "all-zero");
  ASSERT_EQ(dense.size(), 1u);
  EXPECT_EQ(value_of(dense[0], "first"), "2");
  tiny.quantize("gpt-oss", "mxfp4", "*.mlp.experts.*_proj");
  const Findings packed = of_rule(verify_tiny(tiny), "all-zero");
  ASSERT_EQ(packed.size(), 1u);
  EXPECT_EQ(value_of(packed[0], "first"), "2");
}

// In offset binary code 0 is the lowest: a tensor that nobody filled decodes to large numbers.
TEST(AllZero, CodesThatWereNeverWritten) {
  for (const char* format : {"int4-g32", "int4-g32-asym", "int4-channel"}) {
    for (const std::byte byte : {std::byte{0}, std::byte{0x97}}) {
      if (byte != std::byte{0} && std::string_view(format).ends_with("asym")) continue;
      TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
      tiny.quantize("compressed-tensors", format);
      const std::string name = "model.layers.0.mlp.experts.3.down_proj.weight_packed";
      auto& data = tiny.at(name).data;
      std::fill(data.begin(), data.end(), byte);
      const VerifyReport report = verify_tiny(tiny);
      const Findings found = of_rule(report, "all-zero");
      ASSERT_EQ(found.size(), 1u) << format << text_of(report.findings);
      EXPECT_EQ(found[0].severity, Severity::kError) << format;
      EXPECT_EQ(found[0].tensor, name) << format;
      EXPECT_EQ(value_of(found[0], "byte"), byte == std::byte{0} ? "0x00" : "0x97");
      VerifyOptions quick;
      quick.quick = true;
      EXPECT_EQ(of_rule(verify_tiny(tiny, quick), "all-zero").size(), 1u) << format;
    }
  }
}

// All of them, as a program leaves them that writes the tensors' names and shapes and stops.
TEST(AllZero, NoCodeOfTheModelWasWritten) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("compressed-tensors", "int4-g32");
  for (const std::string& name : tiny.matching("*weight_packed")) fill_zero(tiny.at(name));
  const VerifyReport report = verify_tiny(tiny);
  EXPECT_FALSE(report.ok);
  const Findings found = of_rule(report, "all-zero");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(value_of(found.back(), "total"), "24");
}

TEST(AllZero, CodesOfOneExpertOfAStackThatWereNeverWritten) {
  TinyCheckpoint tiny = TinyCheckpoint::gpt_oss();
  tiny.quantize("gpt-oss", "mxfp4", "*.mlp.experts.*_proj");
  auto& data = tiny.at("model.layers.1.mlp.experts.down_proj_blocks").data;
  const auto slice = static_cast<std::ptrdiff_t>(data.size() / 4);
  std::fill(data.begin() + 2 * slice, data.begin() + 3 * slice, std::byte{0x11});
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "all-zero");
  ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
  EXPECT_EQ(value_of(found[0], "first"), "2");
  EXPECT_EQ(value_of(found[0], "flat"), "1");
  EXPECT_EQ(value_of(found[0], "matrices"), "4");
}

// One byte throughout is also what a constant matrix has, and one of two values in turn: then scales do not differ.
// Rows of one value each have different ones, but not within a row; blocks of one value have codes at an end.
TEST(AllZero, ConstantMatricesAreNotUnwritten) {
  const std::vector<std::pair<const char*, float (*)(size_t)>> good = {
      {"constant", [](size_t) { return 0.02f; }},
      {"negative", [](size_t) { return -0.02f; }},
      {"positive rows", [](size_t i) { return 0.02f * static_cast<float>(1 + i / 64 % 7); }},
      {"rows of both signs",
       [](size_t i) { return i / 64 % 2 == 0 ? 0.02f * static_cast<float>(1 + i / 64 % 7) : -0.01f; }},
      {"positive blocks", [](size_t i) { return 0.02f * static_cast<float>(1 + i / 32 % 5); }},
      {"blocks of both signs",
       [](size_t i) { return (i / 32 % 3 == 0 ? 0.02f : -0.02f) * static_cast<float>(1 + i / 32 % 7); }},
      {"in turn", [](size_t i) { return i % 2 == 0 ? 0.05f : -0.02f; }}};
  for (const auto& [what, value] : good) {
    for (const char* format : {"int4-g32", "int4-g32-asym", "int4-channel", "mxfp4", "nvfp4", "mxfp8", "fp8-block"}) {
      TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
      for (const std::string& name : tiny.matching("*.mlp.experts.*")) {
        std::vector<float> values = tiny.values(name);
        for (size_t i = 0; i < values.size(); ++i) values[i] = value(i);
        tiny.set_values(name, values);
      }
      tiny.quantize("compressed-tensors", format);
      const VerifyReport report = verify_tiny(tiny);
      EXPECT_TRUE(of_rule(report, "all-zero").empty()) << what << " " << format << text_of(report.findings);
      EXPECT_TRUE(of_rule(report, "code-hole").empty()) << what << " " << format << text_of(report.findings);
    }
  }
}

}  // namespace
}  // namespace nibble
