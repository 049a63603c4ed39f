#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

constexpr const char* kLayout = "compressed-tensors";

TEST(Against, GoodOnesPassInEveryFormat) {
  const TinyCheckpoint base = TinyCheckpoint::qwen3_moe();
  for (const char* format : {"int4-g32", "int4-g32-asym", "mxfp4", "nvfp4", "mxfp8", "fp8-block", "fp8-channel"}) {
    TinyCheckpoint tiny = base;
    tiny.quantize(kLayout, format);
    const VerifyReport report = verify_against(tiny, base);
    EXPECT_TRUE(of_rule(report, "against").empty()) << format << text_of(report.findings);
    EXPECT_TRUE(of_rule(report, "against-layer").empty()) << format;
    EXPECT_EQ(report.against.size(), 45u);
  }
}

TEST(Against, C137_lists_layer_17_and_no_other) {
  TinyOptions options;
  options.layers = 40;
  const TinyCheckpoint base = TinyCheckpoint::qwen3_moe(options);
  TinyCheckpoint tiny = base;
  tiny.quantize(kLayout, "int4-g32");
  for (const std::string& name : tiny.matching("model.layers.17.mlp.experts.*weight_scale")) tiny.scale_values(name, 3);
  for (const bool quick : {false, true}) {
    VerifyOptions verify_options;
    verify_options.quick = quick;
    const VerifyReport report = verify_against(tiny, base, verify_options);
    EXPECT_FALSE(report.ok);
    const Findings layers = of_rule(report, "against-layer");
    ASSERT_EQ(layers.size(), 1u) << text_of(report.findings);
    EXPECT_EQ(value_of(layers[0], "layer"), "17");
    EXPECT_EQ(value_of(layers[0], "bad"), "12");
    const Findings rows = of_rule(report, "against");
    ASSERT_EQ(rows.size(), 12u);
    for (const Finding& row : rows) {
      EXPECT_TRUE(row.tensor.starts_with("model.layers.17.mlp.experts.")) << row.tensor;
      EXPECT_NEAR(std::stod(value_of(row, "rel_rmse")), 2.0, 0.15);
      EXPECT_NEAR(std::stod(value_of(row, "expected_rel_rmse")), 0.1, 0.05);
    }
    EXPECT_EQ(of_severity(report, Severity::kError).size(), 13u) << text_of(report.findings);
  }
}

TEST(Against, AKeptTensorThatHasChanged) {
  const TinyCheckpoint base = TinyCheckpoint::qwen3_moe();
  TinyCheckpoint tiny = base;
  tiny.quantize(kLayout, "nvfp4");
  tiny.scale_values("model.layers.0.self_attn.o_proj.weight", 1.01f);
  const Findings found = of_rule(verify_against(tiny, base), "against");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].tensor, "model.layers.0.self_attn.o_proj.weight");
}

TEST(Against, AnotherModelAndAnotherShape) {
  const TinyCheckpoint base = TinyCheckpoint::qwen3_moe();
  TinyCheckpoint other = base;
  other.rename("model.", "transformer.");
  other.rename("lm_head", "output_head");
  const VerifyReport report = verify_against(other, base);
  EXPECT_NE(text_of(of_rule(report, "against")).find("another model"), std::string::npos) << text_of(report.findings);

  TinyOptions wide;
  wide.vocabulary = 512;
  const Findings shapes = of_rule(verify_against(TinyCheckpoint::qwen3_moe(wide), base), "against");
  EXPECT_NE(text_of(shapes).find("[512, 64] here, [256, 64] in BASE"), std::string::npos) << text_of(shapes);
}

TEST(Against, StacksAreComparedExpertByExpert) {
  const TinyCheckpoint base = TinyCheckpoint::gpt_oss();
  TinyCheckpoint tiny = base;
  tiny.quantize("gpt-oss", "mxfp4", "*.mlp.experts.*_proj");
  const VerifyReport good = verify_against(tiny, base);
  EXPECT_TRUE(of_rule(good, "against").empty()) << text_of(good.findings);
  // Expert 2, gate: its rows are the even ones of 64; two scales a row.
  auto& scales = tiny.at("model.layers.1.mlp.experts.gate_up_proj_scales").data;
  for (size_t row = 0; row < 64; row += 2) {
    for (size_t block = 0; block < 2; ++block) {
      std::byte& scale = scales[(2 * 64 + row) * 2 + block];
      scale = static_cast<std::byte>(static_cast<uint8_t>(scale) + 2);
    }
  }
  const Findings found = of_rule(verify_against(tiny, base), "against");
  ASSERT_EQ(found.size(), 1u) << text_of(found);
  EXPECT_EQ(found[0].tensor, "model.layers.1.mlp.experts.gate_up_proj[2] gate");
}

}  // namespace
}  // namespace nibble
