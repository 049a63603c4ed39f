#include <gtest/gtest.h>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

const std::string kAttention = "model.layers.1.self_attn.";

VerifyReport with_scale(const std::string& spelling, float value) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.add(kAttention + spelling, Dtype::kF32, {1}, std::vector<std::byte>(4));
  tiny.set_values(kAttention + spelling, std::vector<float>{value});
  return verify_tiny(tiny);
}

TEST(CacheScale, C65_every_spelling_is_judged) {
  for (const char* spelling : {"k_scale", "v_scale", "k_proj.k_scale", "v_proj.v_scale", "kv_scale",
                               "k_proj.output_scale", "v_proj.output_scale", "attn.k_scale"}) {
    const VerifyReport good = with_scale(spelling, 0.02F);
    EXPECT_TRUE(good.ok) << text_of(good.findings);
    for (const float value : {0.0F, -0.0F, -0.02F}) {
      const Findings found = of_rule(with_scale(spelling, value), "cache-scale");
      ASSERT_EQ(found.size(), 1u) << spelling;
      EXPECT_EQ(found[0].severity, Severity::kError);
      EXPECT_EQ(found[0].tensor, kAttention + spelling);
    }
  }
}

TEST(CacheScale, OffsetsOfAnAffineCacheMayBeZero) {
  EXPECT_TRUE(with_scale("k_proj.k_bias", 0).ok);
  EXPECT_TRUE(with_scale("k_proj.k_bias", -0.5F).ok);
}

}  // namespace
}  // namespace nibble
