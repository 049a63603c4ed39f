#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/base/rng.h"
#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

constexpr const char* kLayout = "compressed-tensors";

void swap_nibbles(TinyTensor& tensor) {
  for (std::byte& b : tensor.data)
    b = static_cast<std::byte>(static_cast<uint8_t>(b) << 4 | static_cast<uint8_t>(b) >> 4);
}

TEST(NibbleOrder, ProvedAgainstTheBase) {
  const TinyCheckpoint base = TinyCheckpoint::qwen3_moe();
  TinyCheckpoint tiny = base;
  tiny.quantize(kLayout, "int4-g32");
  EXPECT_TRUE(of_rule(verify_against(tiny, base), "nibble-order").empty());
  const std::string name = "model.layers.1.mlp.experts.0.up_proj.weight_packed";
  swap_nibbles(tiny.at(name));
  const VerifyReport report = verify_against(tiny, base);
  const Findings found = of_rule(report, "nibble-order");
  ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(found[0].tensor, name);
  EXPECT_EQ(value_of(found[0], "order"), "high nibble first");
  EXPECT_GT(std::stod(value_of(found[0], "correlation")), 0.9);
  EXPECT_LT(std::stod(value_of(found[0], "correlation_as_read")), 0.3);
}

TEST(NibbleOrder, HalvesInLowAndHighNibbles) {
  const TinyCheckpoint base = TinyCheckpoint::qwen3_moe();
  TinyCheckpoint tiny = base;
  tiny.quantize(kLayout, "mxfp4");
  const std::string name = "model.layers.1.mlp.experts.0.up_proj.weight_packed";
  auto& codes = tiny.at(name).data;
  const std::vector<std::byte> plain = codes;
  const auto code = [&](size_t column) {
    const auto byte = static_cast<uint8_t>(plain[column / 2]);
    return static_cast<uint8_t>(column % 2 == 0 ? byte & 15 : byte >> 4);
  };
  for (size_t block = 0; block < codes.size(); block += 16) {
    for (size_t j = 0; j < 16; ++j)
      codes[block + j] = static_cast<std::byte>(code(2 * block + j) | code(2 * block + j + 16) << 4);
  }
  const Findings found = of_rule(verify_against(tiny, base), "nibble-order");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(value_of(found[0], "order"), "halves of 32 columns in low and high nibbles");
}

TEST(NibbleOrder, WithoutStructureOneNoteSaysThatItCannotBeDecided) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "nibble-order").empty());  // nothing is packed
  tiny.quantize(kLayout, "nvfp4");
  const Findings found = of_rule(verify_tiny(tiny), "nibble-order");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kNote);
}

// Channels of different size, as trained models have them: the norm makes large what the weights keep small.
TinyCheckpoint with_channels() {
  TinyOptions options;
  options.hidden = 128;
  options.layers = 4;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
  std::vector<float> size(options.hidden);
  for (size_t c = 0; c < size.size(); ++c) size[c] = static_cast<float>(std::exp(0.5 * random_normal(9, c)));
  for (const std::string& name : tiny.matching("model.layers.*")) {
    std::vector<float> values = tiny.values(name);
    if (name.ends_with("post_attention_layernorm.weight")) {
      for (size_t i = 0; i < values.size(); ++i) values[i] /= size[i];
    } else if (name.ends_with("gate_proj.weight") || name.ends_with("up_proj.weight")) {
      for (size_t i = 0; i < values.size(); ++i) values[i] *= size[i % size.size()];
    }
    tiny.set_values(name, values);
  }
  return tiny;
}

TEST(NibbleOrder, ColumnNormsDecideWithoutABase) {
  TinyCheckpoint tiny = with_channels();
  tiny.quantize(kLayout, "int4-g32");
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "nibble-order").empty());
  for (const std::string& name : tiny.matching("*weight_packed")) swap_nibbles(tiny.at(name));
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "nibble-order");
  ASSERT_FALSE(found.empty()) << text_of(report.findings);
  for (const Finding& finding : found) EXPECT_EQ(finding.severity, Severity::kError) << text_of(finding);
}

}  // namespace
}  // namespace nibble
