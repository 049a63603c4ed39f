#include <gtest/gtest.h>

#include <cmath>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

const std::string kUp = "model.layers.1.mlp.experts.2.up_proj.";

TinyCheckpoint quantized(const char* layout, const char* format) {
  TinyOptions options;
  options.hidden = 256;
  options.intermediate = 128;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
  tiny.quantize(layout, format);
  return tiny;
}

void set(TinyCheckpoint& tiny, const std::string& name, size_t index, float value) {
  std::vector<float> values = tiny.values(name);
  values[index] = value;
  tiny.set_values(name, values);
}

TEST(ScaleOutlier, OneBlockFarAboveTheOthers) {
  for (const char* format : {"int4-g32", "int4-g32-asym", "fp8-channel", "mxfp4"}) {
    TinyCheckpoint tiny = quantized("compressed-tensors", format);
    const VerifyReport good = verify_tiny(tiny);
    EXPECT_TRUE(of_rule(good, "scale-outlier").empty()) << text_of(good.findings);
    if (std::string_view(format) == "mxfp4") {
      tiny.at(kUp + "weight_scale").data[9] = std::byte{227};  // 2^100
    } else {
      set(tiny, kUp + "weight_scale", 9, 1e30f);
    }
    const VerifyReport report = verify_tiny(tiny);
    const Findings found = of_rule(report, "scale-outlier");
    ASSERT_EQ(found.size(), 1u) << format << text_of(report.findings);
    EXPECT_EQ(found[0].severity, Severity::kWarning);
    EXPECT_EQ(found[0].tensor, kUp + "weight_scale");
    EXPECT_EQ(value_of(found[0], "blocks"), "1");
    EXPECT_GE(std::stoi(value_of(found[0], "octaves")), 80);  // 1e30 / 0.01 is 2^106
  }
}

// Matrices of one scale have other matrices to be compared with.
TEST(ScaleOutlier, AMatrixFarAboveTheOthers) {
  struct Case {
    const char *layout, *format, *scale;
    float value;
  };
  for (const Case& one : {Case{"compressed-tensors", "fp8-tensor", "weight_scale", 1e30f},
                          Case{"modelopt", "nvfp4", "weight_scale_2", 1e30f},
                          Case{"compressed-tensors", "nvfp4", "weight_global_scale", 1e-30f}}) {
    TinyCheckpoint tiny = quantized(one.layout, one.format);
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "scale-outlier").empty());
    set(tiny, kUp + one.scale, 0, one.value);
    const VerifyReport report = verify_tiny(tiny);
    const Findings found = of_rule(report, "scale-outlier");
    ASSERT_EQ(found.size(), 1u) << one.format << text_of(report.findings);
    EXPECT_EQ(found[0].severity, Severity::kWarning);
    EXPECT_EQ(found[0].tensor, kUp + one.scale);
  }
}

TEST(ScaleOutlier, NextToNothingIsANote) {
  TinyCheckpoint tiny = quantized("compressed-tensors", "int4-g32");
  set(tiny, kUp + "weight_scale", 9, 1e-30f);
  const Findings found = of_rule(verify_tiny(tiny), "scale-outlier");
  ASSERT_EQ(found.size(), 1u) << text_of(found);
  EXPECT_EQ(found[0].severity, Severity::kNote);
}

// Blocks of zeros have whatever scale their quantizer gives them, and outliers of weights are no damage.
TEST(ScaleOutlier, WhatWeightsMayBeIsNone) {
  TinyOptions options;
  options.hidden = 256;
  options.intermediate = 128;
  using Value = float (*)(float x, size_t row, size_t col);
  const std::vector<std::pair<const char*, Value>> good = {
      {"one huge element", [](float x, size_t row, size_t col) { return row == 0 && col == 0 ? 5000.0f : x; }},
      {"pruned rows", [](float x, size_t row, size_t) { return row % 3 == 0 ? 0 : x; }},
      {"all but one", [](float x, size_t row, size_t col) { return row == 5 && col == 7 ? x : 0; }},
      {"rows over six decades",
       [](float x, size_t row, size_t) { return x * std::pow(10.0f, static_cast<float>(row % 7) - 3); }},
      {"rows that have died", [](float x, size_t row, size_t) { return row % 4 == 0 ? x * 1e-20f : x; }}};
  for (const auto& [what, value] : good) {
    for (const char* format : {"int4-g32", "int4-g32-asym", "mxfp4", "nvfp4", "mxfp8", "fp8-channel", "fp8-block"}) {
      TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
      for (const std::string& name : tiny.matching("*.mlp.experts.*")) {
        std::vector<float> values = tiny.values(name);
        const size_t cols = tiny.at(name).shape[1];
        for (size_t i = 0; i < values.size(); ++i) values[i] = value(values[i], i / cols, i % cols);
        tiny.set_values(name, values);
      }
      tiny.quantize("compressed-tensors", format);
      const Findings found = of_rule(verify_tiny(tiny), "scale-outlier");
      EXPECT_TRUE(found.empty()) << what << " " << format << text_of(found);
    }
  }
}

// Where experts are all there is, the few are the exception and not the many.
TEST(ScaleOutlier, ExpertsAlone) {
  TinyCheckpoint tiny = quantized("modelopt", "nvfp4");
  for (const std::string& name : tiny.matching("*")) {
    if (name.find("mlp.experts.") == std::string::npos) tiny.drop(name);
  }
  for (const std::string& name : tiny.matching("*weight_scale_2")) {
    if (name != kUp + "weight_scale_2") set(tiny, name, 0, 1e-20f);
  }
  EXPECT_EQ(of_rule(verify_tiny(tiny), "scale-outlier").size(), 1u);
  for (const std::string& name : tiny.matching("model.layers.0.*weight_scale_2")) set(tiny, name, 0, 1e-4f);
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "scale-outlier").empty());
}

}  // namespace
}  // namespace nibble
