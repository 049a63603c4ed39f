#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "nibble/base/rng.h"
#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

// C58: the codes of `values` quantized under `used` while `stored` is written down.
TinyCheckpoint with_scales_in_order(bool right, const char* format, uint64_t size, double lowest, double highest) {
  TinyOptions options;
  options.hidden = size;
  options.intermediate = size;
  options.layers = 1;
  options.experts = 22;
  options.heads = 4;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
  uint64_t index = 0;
  for (const std::string& name : tiny.matching("*.mlp.experts.*")) {
    std::vector<float> values = tiny.values(name);
    const double amax = lowest + (highest - lowest) * random_uniform(5, index++);
    for (float& x : values) x = static_cast<float>(std::clamp(static_cast<double>(x) / 0.2 * amax, -amax, amax));
    values[3] = static_cast<float>(amax);
    tiny.set_values(name, values);
  }
  tiny.quantize("compressed-tensors", format);
  for (const std::string& name : tiny.matching("*.experts.*.weight_scale")) {
    std::vector<float> scales = tiny.values(name);
    for (float& s : scales) s = std::exp2(std::ceil(std::log2(s)));
    if (!right) tiny.set_values(name, scales);  // the codes are those of the exact scale
  }
  return tiny;
}

TEST(ScaleOrder, C58_wrong_order_is_proved_from_the_codes) {
  const VerifyReport wrong = verify_tiny(with_scales_in_order(false, "fp8-block", 128, 100, 1000));
  const Findings found = of_rule(wrong, "scale-order");
  ASSERT_EQ(found.size(), 1u) << text_of(wrong.findings);
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(value_of(found[0], "blocks"), "66");
  EXPECT_EQ(value_of(found[0], "share"), "100 %");
  EXPECT_FALSE(wrong.ok);
  EXPECT_TRUE(of_rule(verify_tiny(with_scales_in_order(true, "fp8-block", 128, 100, 1000)), "scale-order").empty());
}

TEST(ScaleOrder, OneWeightWithManyBlocksIsEnough) {
  const Findings found = of_rule(verify_tiny(with_scales_in_order(false, "fp8-block", 512, 100, 1000)), "scale-order");
  EXPECT_EQ(found.size(), 21u);  // 66 weights of 16 blocks: each by itself
}

TEST(ScaleOrder, RightOrderPasses) {
  for (const char* format : {"mxfp4", "mxfp8"}) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize("compressed-tensors", format);
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "scale-order").empty()) << format;
  }
}

// The same fault with blocks of 32 and four-bit codes: every block reaches 6.
TEST(ScaleOrder, FourBitCodes) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("compressed-tensors", "mxfp4");
  for (const std::string& name : tiny.matching("*.experts.*.weight_packed")) {
    auto& codes = tiny.at(name).data;
    for (size_t block = 0; block < codes.size(); block += 16) codes[block] = std::byte{0x17};
  }
  const Findings found = of_rule(verify_tiny(tiny), "scale-order");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(value_of(found[0], "share"), "100 %");
}

}  // namespace
}  // namespace nibble
