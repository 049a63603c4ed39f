#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

constexpr const char* kLayout = "compressed-tensors";
const std::string kUp = "model.layers.1.mlp.experts.2.up_proj.";

void set_float(TinyTensor& tensor, size_t index, float value) {
  if (tensor.dtype == Dtype::kBF16) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    const auto high = static_cast<uint16_t>(bits >> 16);
    std::memcpy(tensor.data.data() + 2 * index, &high, 2);
  } else {
    std::memcpy(tensor.data.data() + 4 * index, &value, 4);
  }
}

TEST(NonFinite, GoodOnesPass) {
  for (const char* format : {"int4-g32", "nvfp4", "mxfp4", "fp8-block", "mxfp8"}) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize(kLayout, format);
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "non-finite").empty()) << format;
  }
}

TEST(NonFinite, NanAndInfinityInADenseWeight) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  set_float(tiny.at("model.layers.0.self_attn.q_proj.weight"), 70, NAN);
  set_float(tiny.at("model.layers.0.self_attn.q_proj.weight"), 80, -INFINITY);
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "non-finite");
  ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(found[0].tensor, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(value_of(found[0], "nan"), "1");
  EXPECT_EQ(value_of(found[0], "infinite"), "1");
  EXPECT_EQ(value_of(found[0], "first"), "70");
  EXPECT_FALSE(report.ok);
}

TEST(NonFinite, NegativeScale) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize(kLayout, "int4-g32");
  set_float(tiny.at(kUp + "weight_scale"), 5, -0.5f);
  const Findings found = of_rule(verify_tiny(tiny), "non-finite");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].tensor, kUp + "weight_scale");
  EXPECT_EQ(value_of(found[0], "negative"), "1");
  EXPECT_EQ(value_of(found[0], "first"), "5");
}

// As quantizers do that give the extreme of each block the code -8: the same numbers under scales of both signs.
TEST(NonFinite, ScalesOfBothSignsThatAreMeant) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize(kLayout, "int4-g32");
  auto& codes = tiny.at(kUp + "weight_packed").data;
  std::vector<float> scales = tiny.values(kUp + "weight_scale");
  for (size_t block = 0; block < scales.size(); ++block) {
    codes[16 * block] = std::byte{0x80};
    if (block % 2 == 0) scales[block] = -scales[block];
  }
  tiny.set_values(kUp + "weight_scale", scales);
  const VerifyReport report = verify_tiny(tiny);
  EXPECT_TRUE(of_rule(report, "non-finite").empty()) << text_of(report.findings);
}

TEST(NonFinite, NanByteInBlockScalesOfEitherType) {
  for (const auto& [format, byte] : {std::pair{"nvfp4", 0x7F}, {"nvfp4", 0xFF}, {"mxfp4", 0xFF}, {"nvfp4", 0x81}}) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize(kLayout, format);
    tiny.at(kUp + "weight_scale").data[3] = static_cast<std::byte>(byte);
    const Findings found = of_rule(verify_tiny(tiny), "non-finite");
    ASSERT_EQ(found.size(), 1u) << format << " " << byte;
    EXPECT_EQ(value_of(found[0], "first"), "3");
    EXPECT_EQ(value_of(found[0], byte == 0x81 ? "negative" : "nan"), "1");
  }
}

TEST(NonFinite, NanCodes) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize(kLayout, "fp8-block");
  tiny.at(kUp + "weight").data[9] = std::byte{0x7F};
  tiny.at(kUp + "weight").data[10] = std::byte{0xFF};
  const Findings found = of_rule(verify_tiny(tiny), "non-finite");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(value_of(found[0], "codes"), "0x7F, 0xFF");
  EXPECT_EQ(value_of(found[0], "count"), "2");
}

TEST(NonFinite, SecondLevelScale) {
  for (const float bad : {NAN, INFINITY, -1.0f}) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize(kLayout, "nvfp4");
    set_float(tiny.at(kUp + "weight_global_scale"), 0, bad);
    const Findings found = of_rule(verify_tiny(tiny), "non-finite");
    ASSERT_EQ(found.size(), 1u) << bad;
    EXPECT_EQ(found[0].tensor, kUp + "weight_global_scale");
  }
}

}  // namespace
}  // namespace nibble
