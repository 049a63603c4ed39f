#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

TEST(PackedWithoutHome, ScalesThatAreGone) {
  for (const char* format : {"int4-g32", "mxfp4", "fp8-channel"}) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize("compressed-tensors", format);
    tiny.drop("model.layers.0.mlp.experts.1.up_proj.weight_scale");
    const VerifyReport report = verify_tiny(tiny);
    EXPECT_FALSE(report.ok) << format;
    bool named = false;
    for (const Finding& finding : of_severity(report, Severity::kError))
      named = named || text_of(finding).find("model.layers.0.mlp.experts.1.up_proj") != std::string::npos;
    EXPECT_TRUE(named) << format << text_of(report.findings);
  }
}

TEST(PackedWithoutHome, PackedBytesUnderAStrangeName) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("compressed-tensors", "mxfp4");
  TinyTensor packed = tiny.at("model.layers.0.mlp.experts.1.up_proj.weight_packed");
  tiny.add("model.layers.0.mlp.experts.1.up_proj.codes", packed.dtype, packed.shape, packed.data);
  const VerifyReport report = verify_tiny(tiny);
  bool named = false;
  for (const Finding& finding : report.findings)
    named = named || (finding.tensor.ends_with("up_proj.codes") && finding.severity != Severity::kNote);
  EXPECT_TRUE(named) << text_of(report.findings);
}

}  // namespace
}  // namespace nibble
