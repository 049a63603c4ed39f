#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

TEST(MixedFormats, C25_part_of_the_experts_of_a_layer) {
  TinyOptions options;
  options.experts = 256;
  options.layers = 1;
  options.hidden = 32;
  options.intermediate = 16;
  TinyCheckpoint base = TinyCheckpoint::qwen3_moe(options);
  TinyCheckpoint all = base;
  all.quantize("compressed-tensors", "nvfp4");
  EXPECT_TRUE(of_rule(verify_tiny(all), "mixed-formats").empty());
  EXPECT_TRUE(of_rule(verify_tiny(base), "mixed-formats").empty());

  TinyCheckpoint mixed = all;
  for (int e = 0; e < 100; ++e) {
    for (const char* projection : {"gate_proj", "up_proj", "down_proj"}) {
      const std::string module = "model.layers.0.mlp.experts." + std::to_string(e) + "." + projection + ".";
      for (const std::string& name : mixed.matching(module + "*")) mixed.drop(name);
      const TinyTensor& tensor = base.at(module + "weight");
      mixed.add(module + "weight", tensor.dtype, tensor.shape, tensor.data);
    }
  }
  const VerifyReport report = verify_tiny(mixed);
  const Findings found = of_rule(report, "mixed-formats");
  ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(value_of(found[0], "layer"), "0");
  EXPECT_EQ(value_of(found[0], "bf16"), "100");
  EXPECT_EQ(value_of(found[0], "nvfp4"), "156");
  EXPECT_NE(found[0].message.find("0-99"), std::string::npos) << found[0].message;
  EXPECT_FALSE(report.ok);
}

TEST(MixedFormats, OneProjectionInAnotherFormatIsLegal) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("compressed-tensors", "nvfp4", "*.experts.*.down_proj.weight");
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "mixed-formats").empty());
}

TEST(MixedFormats, GateWithoutUpIsNot) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("compressed-tensors", "nvfp4", "*.layers.1.*.experts.*.gate_proj.weight");
  const Findings found = of_rule(verify_tiny(tiny), "mixed-formats");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(value_of(found[0], "layer"), "1");
}

TEST(MixedFormats, QueryWithoutKeyIsAWarning) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("compressed-tensors", "nvfp4", "*.layers.0.self_attn.q_proj.weight");
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "mixed-formats");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_TRUE(report.ok);
}

}  // namespace
}  // namespace nibble
