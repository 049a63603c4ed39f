#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

TEST(QuantizedRouter, RouterIsAnErrorEmbeddingAWarningHeadIsFree) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("compressed-tensors", "mxfp4");
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "quantized-router").empty());
  for (const auto& [glob, severity] :
       {std::pair{"*.layers.1.mlp.gate.weight", Severity::kError}, {"*embed_tokens.weight", Severity::kWarning}}) {
    TinyCheckpoint one = TinyCheckpoint::qwen3_moe();
    one.quantize("compressed-tensors", "mxfp4", glob);
    const VerifyReport report = verify_tiny(one);
    const Findings found = of_rule(report, "quantized-router");
    ASSERT_EQ(found.size(), 1u) << glob << text_of(report.findings);
    EXPECT_EQ(found[0].severity, severity) << text_of(found[0]);
    EXPECT_EQ(report.ok, severity != Severity::kError) << text_of(report.findings);
  }
  TinyCheckpoint head = TinyCheckpoint::qwen3_moe();
  head.quantize("compressed-tensors", "mxfp4", "lm_head.weight");
  EXPECT_TRUE(of_rule(verify_tiny(head), "quantized-router").empty());
}

}  // namespace
}  // namespace nibble
