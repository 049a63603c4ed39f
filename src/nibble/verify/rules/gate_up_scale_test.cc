#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

TEST(GateUpScale, C01_pair_and_ratio_are_named) {
  TinyOptions options;
  options.experts = 2;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
  tiny.quantize("compressed-tensors", "nvfp4");
  for (const std::string& name : tiny.matching("*weight_global_scale"))
    tiny.set_values(name, std::vector<float>{20000});
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "gate-up-scale").empty());
  for (const std::string& name : tiny.matching("*.up_proj.weight_global_scale"))
    tiny.set_values(name, std::vector<float>{1 / 4.83e-5f});
  for (const std::string& name : tiny.matching("*.gate_proj.weight_global_scale"))
    tiny.set_values(name, std::vector<float>{1 / 3.85e-5f});
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "gate-up-scale");
  ASSERT_EQ(found.size(), 4u) << text_of(report.findings);  // 2 layers, 2 experts
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_EQ(value_of(found[0], "ratio"), "1.2545");
  EXPECT_NE(text_of(found[0]).find("experts.0.gate_proj"), std::string::npos);
  EXPECT_NE(text_of(found[0]).find("experts.0.up_proj"), std::string::npos);
  EXPECT_NE(text_of(found[0]).find("3.85e-05"), std::string::npos) << text_of(found[0]);
  EXPECT_NE(text_of(found[0]).find("4.83e-05"), std::string::npos) << text_of(found[0]);
  EXPECT_TRUE(report.ok);
}

TEST(GateUpScale, QueryKeyAndValue) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("compressed-tensors", "nvfp4", "*.self_attn.?_proj.weight");
  for (const std::string& name : tiny.matching("*weight_global_scale"))
    tiny.set_values(name, std::vector<float>{20000});
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "gate-up-scale").empty());
  tiny.set_values("model.layers.0.self_attn.v_proj.weight_global_scale", std::vector<float>{10000});
  const Findings found = of_rule(verify_tiny(tiny), "gate-up-scale");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(value_of(found[0], "ratio"), "2.0000");
}

}  // namespace
}  // namespace nibble
