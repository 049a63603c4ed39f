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

TinyCheckpoint wide(double deviation) {
  TinyOptions options;
  options.hidden = 256;
  options.intermediate = 128;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
  for (const std::string& name : tiny.matching("*.mlp.experts.*"))
    tiny.scale_values(name, static_cast<float>(deviation / options.deviation));
  return tiny;
}

void keep_experts_alone(TinyCheckpoint& tiny) {
  for (const std::string& name : tiny.matching("*")) {
    if (name.find("mlp.experts.") == std::string::npos) tiny.drop(name);
  }
}

void reverse_all(TinyCheckpoint& tiny) {
  for (const std::string& name : tiny.matching("*.weight_scale")) {
    if (tiny.at(name).dtype != Dtype::kU8) {
      reverse(tiny, name);
    } else {
      for (std::byte& exponent : tiny.at(name).data)
        exponent = static_cast<std::byte>(254 - static_cast<uint8_t>(exponent));
    }
  }
}

// Experts of another size than all else: their scales come with smaller codes where they are larger, as multipliers do.
TEST(ScaleDirection, LargeExpertsAreNoReciprocals) {
  for (const char* format : {"int4-g32", "int4-g32-asym", "mxfp4", "mxfp8"}) {
    for (const double deviation : {30.0, 3.0, 0.001}) {
      for (const bool alone : {false, true}) {
        TinyCheckpoint tiny = wide(deviation);
        tiny.quantize(kLayout, format);
        if (alone) keep_experts_alone(tiny);
        const Findings found = of_rule(verify_tiny(tiny), "scale-direction");
        EXPECT_TRUE(found.empty()) << format << " " << deviation << " " << alone << text_of(found);
      }
    }
  }
}

// And the other way round where they are reciprocals, with nothing to compare their size with.
TEST(ScaleDirection, ExpertsAloneTellByTheirCodes) {
  for (const char* format : {"int4-g32", "int4-g32-asym", "mxfp4"}) {
    for (const bool alone : {false, true}) {
      TinyCheckpoint tiny = wide(0.05);
      tiny.quantize(kLayout, format);
      reverse_all(tiny);
      if (alone) keep_experts_alone(tiny);
      const Findings found = of_rule(verify_tiny(tiny), "scale-direction");
      ASSERT_EQ(found.size(), 21u) << format << " " << alone;
      EXPECT_EQ(value_of(found.back(), "total"), "24");
      EXPECT_EQ(found[0].severity, Severity::kError);
    }
  }
}

// One scale for a row or a matrix has no neighbours, and 30 is no size that weights cannot have.
TEST(ScaleDirection, WhatCannotBeDecidedIsNoted) {
  TinyCheckpoint tiny = wide(30);
  tiny.quantize(kLayout, "int4-channel");
  keep_experts_alone(tiny);
  const Findings found = of_rule(verify_tiny(tiny), "scale-direction");
  ASSERT_EQ(found.size(), 1u) << text_of(found);
  EXPECT_EQ(found[0].severity, Severity::kNote);
  EXPECT_EQ(value_of(found[0], "weights"), "24");
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
