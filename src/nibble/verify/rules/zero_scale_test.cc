#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

constexpr const char* kLayout = "compressed-tensors";
const std::string kUp = "model.layers.0.mlp.experts.1.up_proj.";

TEST(ZeroScale, GoodOnesPass) {
  for (const char* format : {"int4-g32", "int4-g32-asym", "nvfp4", "fp8-channel"}) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize(kLayout, format);
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "zero-scale").empty()) << format;
  }
}

TEST(ZeroScale, FloatScaleOfZeroIsAnError) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize(kLayout, "int4-g32");
  auto& scales = tiny.at(kUp + "weight_scale").data;
  scales[8] = scales[9] = std::byte{0};
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "zero-scale");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(found[0].tensor, kUp + "weight_scale");
  EXPECT_EQ(value_of(found[0], "zeros"), "1");
}

TEST(ZeroScale, BytesThatNobodyFilledAreAnErrorInE8m0) {
  for (const char* format : {"mxfp4", "mxfp8"}) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize(kLayout, format);
    auto& scales = tiny.at(kUp + "weight_scale").data;
    scales[0] = std::byte{0};  // one block of zeros is as it should be
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "zero-scale").empty()) << format;
    std::fill(scales.begin(), scales.end(), std::byte{0});
    const VerifyReport report = verify_tiny(tiny);
    const Findings found = of_rule(report, "zero-scale");
    ASSERT_EQ(found.size(), 1u) << format;
    EXPECT_EQ(found[0].severity, Severity::kError);
    EXPECT_EQ(found[0].tensor, kUp + "weight_scale");
    EXPECT_FALSE(report.ok);
  }
}

TEST(ZeroScale, SecondLevelOfZeroIsAnError) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize(kLayout, "nvfp4");
  tiny.set_values(kUp + "weight_global_scale", std::vector<float>{0});
  const Findings found = of_rule(verify_tiny(tiny), "zero-scale");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(found[0].tensor, kUp + "weight_global_scale");
}

TEST(ZeroScale, ZeroBlockScaleUnderASecondLevelOnlyMattersWithCodes) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize(kLayout, "nvfp4");
  tiny.at(kUp + "weight_scale").data[0] = std::byte{0};  // K = 64: 4 blocks of 8 bytes a row
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "zero-scale");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_EQ(value_of(found[0], "blocks"), "1");
  EXPECT_TRUE(report.ok);

  auto& codes = tiny.at(kUp + "weight_packed").data;
  std::fill(codes.begin(), codes.begin() + 8, std::byte{0});
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "zero-scale").empty());
}

}  // namespace
}  // namespace nibble
