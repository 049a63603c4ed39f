#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

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

using Sizes = std::vector<float>;  // by channel

// Experts and the norm before them with factors for their channels.
TinyCheckpoint with_channels(const TinyOptions& options, const Sizes& of_weights, const Sizes& of_norms) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
  for (const std::string& name : tiny.matching("model.layers.*")) {
    std::vector<float> values = tiny.values(name);
    if (name.ends_with("post_attention_layernorm.weight")) {
      for (size_t i = 0; i < values.size(); ++i) values[i] *= of_norms[i];
    } else if (name.ends_with("gate_proj.weight") || name.ends_with("up_proj.weight")) {
      for (size_t i = 0; i < values.size(); ++i) values[i] *= of_weights[i % of_weights.size()];
    }
    tiny.set_values(name, values);
  }
  return tiny;
}

// Channels of different size, as trained models have them: the norm makes large what the weights keep small.
TinyCheckpoint with_opposite_channels(double deviation) {
  TinyOptions options;
  options.hidden = 128;
  options.layers = 4;
  Sizes weights, norms;
  for (size_t c = 0; c < options.hidden; ++c) {
    weights.push_back(static_cast<float>(std::exp(deviation * random_normal(9, c))));
    norms.push_back(1 / weights.back());
  }
  return with_channels(options, weights, norms);
}

void swap_all_nibbles(TinyCheckpoint& tiny) {
  for (const std::string& name : tiny.matching("*weight_packed")) swap_nibbles(tiny.at(name));
}

TEST(NibbleOrder, ColumnNormsDecideWithoutABase) {
  TinyCheckpoint tiny = with_opposite_channels(0.5);
  tiny.quantize(kLayout, "int4-g32");
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "nibble-order").empty());
  swap_all_nibbles(tiny);
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "nibble-order");
  ASSERT_FALSE(found.empty()) << text_of(report.findings);
  for (const Finding& finding : found) EXPECT_EQ(finding.severity, Severity::kError) << text_of(finding);
}

// No layer alone is sure, all together are: the error names a weight that has two codes in a byte.
TEST(NibbleOrder, LayersTogetherDecide) {
  TinyCheckpoint tiny = with_opposite_channels(0.048);
  tiny.quantize(kLayout, "int4-g32");
  swap_all_nibbles(tiny);
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "nibble-order");
  ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(value_of(found[0], "layer"), "-1");
  EXPECT_TRUE(found[0].tensor.starts_with("model.layers.0.mlp.experts.") && found[0].tensor.ends_with("weight_packed"))
      << found[0].tensor;
}

// Regions of large and of small channels, in norms and weights alike, and in each the opposite relation between
// neighbours: what all channels follow says nothing of them, and neither order is proved.
TEST(NibbleOrder, ATrendOverTheChannelsIsNoProof) {
  TinyOptions options;
  options.hidden = 256;
  const auto steps = [](size_t c) { return c < 128 ? 2.0 : 0.5; };
  const auto waves = [](size_t c) { return std::exp(std::sin(static_cast<double>(c) * M_PI / 128)); };
  for (const auto& trend : {std::function<double(size_t)>(steps), std::function<double(size_t)>(waves)}) {
    Sizes weights, norms;
    for (size_t c = 0; c < options.hidden; ++c) {
      const double own = std::exp(0.35 * random_normal(3, c));
      weights.push_back(static_cast<float>(trend(c) / own));
      norms.push_back(static_cast<float>(trend(c) * own));
    }
    TinyCheckpoint tiny = with_channels(options, weights, norms);
    for (const char* format : {"int4-g32", "mxfp4", "nvfp4"}) {
      TinyCheckpoint packed = tiny;
      packed.quantize(kLayout, format);
      for (const char* order : {"right", "swapped"}) {
        const Findings found = of_rule(verify_tiny(packed), "nibble-order");
        ASSERT_EQ(found.size(), 1u) << format << " " << order;
        EXPECT_EQ(found[0].severity, Severity::kNote) << format << " " << order << text_of(found);
        swap_all_nibbles(packed);
      }
    }
  }
}

}  // namespace
}  // namespace nibble
