#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

constexpr const char* kLayout = "compressed-tensors";

TEST(ScaleDirection, GoodOnesPass) {
  for (const char* format : {"int4-g32", "int4-g32-asym", "mxfp4", "nvfp4", "mxfp8", "fp8-block", "fp8-tensor"}) {
    for (const double deviation : {0.002, 0.05, 1.0}) {
      TinyOptions options;
      options.deviation = deviation;
      TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
      tiny.quantize(kLayout, format);
      EXPECT_TRUE(of_rule(verify_tiny(tiny), "scale-direction").empty()) << format << " " << deviation;
    }
  }
}

void reverse(TinyCheckpoint& tiny, const std::string& name) {
  std::vector<float> values = tiny.values(name);
  for (float& x : values) x = 1 / x;
  tiny.set_values(name, values);
}

TEST(ScaleDirection, SecondLevelStoredAsTheOtherConventionMeansIt) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize(kLayout, "nvfp4");
  for (const std::string& name : tiny.matching("*weight_global_scale")) reverse(tiny, name);
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "scale-direction");
  ASSERT_EQ(found.size(), 21u) << text_of(report.findings);  // 24: the first 20 and their number
  EXPECT_EQ(value_of(found[20], "total"), "24");
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(found[0].tensor, "model.layers.0.mlp.experts.0.down_proj.weight_global_scale");
  EXPECT_GT(std::stod(value_of(found[0], "ratio")), 1e6);
  EXPECT_NEAR(std::stod(value_of(found[0], "rms_reversed")), 0.05, 0.02);
}

TEST(ScaleDirection, OneOfManyIsFound) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize(kLayout, "nvfp4");
  reverse(tiny, "model.layers.1.mlp.experts.3.up_proj.weight_global_scale");
  const Findings found = of_rule(verify_tiny(tiny), "scale-direction");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].tensor, "model.layers.1.mlp.experts.3.up_proj.weight_global_scale");
}

TEST(ScaleDirection, ScalesOfOneLevelToo) {
  for (const char* format : {"fp8-block", "fp8-channel", "fp8-tensor", "int4-g32"}) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize(kLayout, format);
    reverse(tiny, "model.layers.0.mlp.experts.1.gate_proj.weight_scale");
    const Findings found = of_rule(verify_tiny(tiny), "scale-direction");
    ASSERT_EQ(found.size(), 1u) << format;
    EXPECT_EQ(found[0].tensor, "model.layers.0.mlp.experts.1.gate_proj.weight_scale");
  }
}

TEST(ScaleDirection, QuickSeesItToo) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize(kLayout, "nvfp4");
  reverse(tiny, "model.layers.1.mlp.experts.3.up_proj.weight_global_scale");
  VerifyOptions options;
  options.quick = true;
  EXPECT_EQ(of_rule(verify_tiny(tiny, options), "scale-direction").size(), 1u);
}

}  // namespace
}  // namespace nibble
