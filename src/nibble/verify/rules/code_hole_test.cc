#include <gtest/gtest.h>

#include <cmath>

#include "nibble/base/log.h"
#include "nibble/base/rng.h"
#include "nibble/verify/rederive_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

const std::string kUp = "model.layers.1.mlp.experts.3.up_proj.";

TinyCheckpoint dense() {
  TinyOptions options;
  options.hidden = 256;
  options.intermediate = 128;
  return TinyCheckpoint::qwen3_moe(options);
}

void lose_tail(TinyTensor& tensor, double share) {
  const auto lost = static_cast<std::ptrdiff_t>(static_cast<double>(tensor.data.size()) * share);
  std::fill(tensor.data.end() - lost, tensor.data.end(), std::byte{0});
}

struct Case {
  const char *layout, *format, *codes;
};
constexpr auto kCases = std::to_array<Case>({{"compressed-tensors", "int4-g32", "weight_packed"},
                                             {"compressed-tensors", "int4-g32-asym", "weight_packed"},
                                             {"compressed-tensors", "int4-channel", "weight_packed"},
                                             {"compressed-tensors", "mxfp4", "weight_packed"},
                                             {"compressed-tensors", "nvfp4", "weight_packed"},
                                             {"modelopt", "nvfp4", "weight"},
                                             {"compressed-tensors", "mxfp8", "weight"},
                                             {"compressed-tensors", "fp8-channel", "weight"},
                                             {"compressed-tensors", "fp8-tensor", "weight"},
                                             {"deepseek", "fp8-block", "weight"}});

TEST(CodeHole, ALostPartIsAWarning) {
  for (const Case& one : kCases) {
    TinyCheckpoint good = dense();
    good.quantize(one.layout, one.format);
    EXPECT_TRUE(of_rule(verify_tiny(good), "code-hole").empty()) << one.format;
    for (const double share : {0.5, 0.25}) {
      SCOPED_TRACE(std::string(one.format) + " " + std::to_string(share));
      TinyCheckpoint tiny = good;
      lose_tail(tiny.at(kUp + one.codes), share);
      const VerifyReport report = verify_tiny(tiny);
      const Findings found = of_rule(report, "code-hole");
      ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
      EXPECT_EQ(found[0].severity, Severity::kWarning);
      EXPECT_EQ(found[0].tensor, kUp + one.codes);
      EXPECT_NEAR(std::stod(value_of(found[0], "elements")), share * 128 * 256, 128) << text_of(found);
    }
  }
}

TEST(CodeHole, DenseMatricesToo) {
  TinyCheckpoint tiny = dense();
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "code-hole").empty());
  lose_tail(tiny.at(kUp + "weight"), 0.25);
  lose_tail(tiny.at("model.embed_tokens.weight"), 0.25);  // words that nobody uses
  const Findings found = of_rule(verify_tiny(tiny), "code-hole");
  ASSERT_EQ(found.size(), 1u) << text_of(found);
  EXPECT_EQ(found[0].tensor, kUp + "weight");
}

// Proved, however small the hole is beside the rounding.
TEST(CodeHole, BaseKnows) {
  const TinyCheckpoint base = dense();
  for (const Case& one : kCases) {
    for (const double share : {0.5, 1.0 / 32}) {
      TinyCheckpoint tiny = base;
      tiny.quantize(one.layout, one.format);
      EXPECT_TRUE(of_rule(verify_against(tiny, base), "code-hole").empty()) << one.format;
      lose_tail(tiny.at(kUp + one.codes), share);
      const Findings found = of_rule(verify_against(tiny, base), "code-hole");
      // Four rows of 128: with a scale for many rows that is not much.
      if (share < 0.1 && found.empty()) {
        EXPECT_TRUE(std::string_view(one.format).starts_with("fp8")) << one.format;
        continue;
      }
      ASSERT_EQ(found.size(), 1u) << one.format << " " << share;
      EXPECT_EQ(found[0].severity, Severity::kError) << one.format << " " << share;
    }
  }
}

// Weights that have such parts themselves: padded, pruned, sparse, one-hot, of one value.
TEST(CodeHole, ZerosOfTheSourceAreNoHole) {
  log::set_level(log::Level::kOff);
  using Value = float (*)(float x, size_t i, size_t row, size_t col);
  const std::vector<std::pair<const char*, Value>> good = {
      {"padded rows", [](float x, size_t, size_t row, size_t) { return row >= 96 ? 0 : x; }},
      {"padded columns", [](float x, size_t, size_t, size_t col) { return col >= 64 ? 0 : x; }},
      {"pruned rows", [](float x, size_t, size_t row, size_t) { return row % 4 == 1 ? 0 : x; }},
      {"pruned", [](float x, size_t i, size_t, size_t) { return random_uniform(3, i) < 0.97 ? 0 : x; }},
      {"identity", [](float, size_t, size_t row, size_t col) { return row == col ? 1.0f : 0.0f; }},
      {"one element", [](float x, size_t i, size_t, size_t) { return i == 777 ? x : 0.0f; }},
      {"nearly nothing in many rows", [](float x, size_t, size_t row, size_t) { return row < 64 ? x * 1e-9f : x; }},
      {"one value in many rows", [](float x, size_t, size_t row, size_t) { return row < 64 ? -0.02f : x; }}};
  for (const auto& [what, value] : good) {
    TinyCheckpoint source = dense();
    for (const std::string& name : source.matching("*.mlp.experts.*")) {
      std::vector<float> values = source.values(name);
      const size_t cols = source.at(name).shape[1];
      for (size_t i = 0; i < values.size(); ++i) values[i] = value(values[i], i, i / cols, i % cols);
      source.set_values(name, values);
    }
    for (const Case& one : kCases) {
      TinyCheckpoint tiny = source;
      tiny.quantize(one.layout, one.format);
      const Findings alone = of_rule(verify_tiny(tiny), "code-hole");
      for (const Finding& finding : alone)
        EXPECT_EQ(finding.severity, Severity::kNote) << what << " " << one.format << text_of(finding);
      EXPECT_LE(alone.size(), 1u);
      const VerifyReport against = verify_against(tiny, source);
      EXPECT_TRUE(of_rule(against, "code-hole").empty()) << what << " " << one.format << text_of(against.findings);
    }
  }
}

// Rows of GPTQ lie across.
TEST(CodeHole, OtherLayouts) {
  TinyCheckpoint tiny = TinyCheckpoint::load(golden_dir() / "models" / "linear_gptq");
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "code-hole").empty());
  const std::vector<std::string> codes = tiny.matching("*.qweight");
  ASSERT_FALSE(codes.empty());
  lose_tail(tiny.at(codes.front()), 0.5);
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "code-hole");
  ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
  EXPECT_EQ(found[0].tensor, codes.front());
}

}  // namespace
}  // namespace nibble
