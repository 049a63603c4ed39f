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

}  // namespace
}  // namespace nibble
