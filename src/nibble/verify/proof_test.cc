// What is proved is not called wrong for looking unusual; what was only moved still is, and what differs from BASE gets
// its reason.
#include "nibble/verify/proof.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nibble/base/log.h"
#include "nibble/base/rng.h"
#include "nibble/verify/rederive_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

constexpr const char* kExperts = "*.mlp.experts.*.weight";

// Experts four thousand times the size of everything else, as large as reciprocals of the scales would make them, with
// one scale for a row: it has no neighbours that tell.
TinyCheckpoint large() {
  TinyOptions options;
  options.intermediate = options.hidden;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
  for (const std::string& name : tiny.matching(kExperts)) tiny.scale_values(name, 4000);
  return tiny;
}

// Normal weights and, in every block of 32, one that is much larger: every block reaches the largest code, and once.
TinyCheckpoint one_large() {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  for (const std::string& name : tiny.matching(kExperts)) {
    std::vector<float> values = tiny.values(name);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = i % 32 == 5 ? std::copysign(0.75f, values[i]) : std::clamp(4 * values[i], -0.6f, 0.6f);
    tiny.set_values(name, values);
  }
  return tiny;
}

// Channels whose sizes follow those of the norms with neighbours exchanged.
TinyCheckpoint exchanged() {
  TinyOptions options;
  options.hidden = 128;
  options.layers = 4;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
  for (const std::string& name : tiny.matching("model.layers.*")) {
    std::vector<float> values = tiny.values(name);
    const bool norm = name.ends_with("post_attention_layernorm.weight");
    if (!norm && !name.ends_with("gate_proj.weight") && !name.ends_with("up_proj.weight")) continue;
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t channel = i % options.hidden;
      const auto size = static_cast<float>(std::exp(0.5 * random_normal(9, norm ? channel : channel ^ 1u)));
      values[i] = norm ? values[i] / size : values[i] * size;
    }
    tiny.set_values(name, values);
  }
  return tiny;
}

// Few small weights and many large ones: bells around both ends of the range.
TinyCheckpoint at_the_ends() {
  TinyOptions options;
  options.hidden = 128;
  options.intermediate = 64;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
  for (const std::string& name : tiny.matching(kExperts)) {
    std::vector<float> values = tiny.values(name);
    for (float& x : values) x = 0.9375f * (x < 0 ? -std::min(1.0f, 1.13f + 4 * x) : 1 - 4 * x);
    tiny.set_values(name, values);
  }
  return tiny;
}

struct Case {
  const char* rule;
  const char* format;
  TinyCheckpoint source;
};

std::vector<Case> cases() {
  return {{"scale-direction", "int4-g64", large()},
          {"scale-order", "mxfp4", one_large()},
          {"nibble-order", "int4-g32", exchanged()},
          {"code-encoding", "int4-g32", at_the_ends()}};
}

uint64_t errors_of(const VerifyReport& report, std::string_view rule) {
  const Findings found = of_rule(report, rule);
  return static_cast<uint64_t>(
      std::ranges::count_if(found, [](const Finding& f) { return f.severity == Severity::kError; }));
}

class Proof : public ::testing::Test {
 protected:
  void SetUp() override { log::set_level(log::Level::kOff); }

  Path source() const { return dir_ / "source"; }
  Path target() const { return dir_ / "target"; }

  // `one`'s source, and what quantize makes of it.
  void make(const Case& one) const {
    for (const Path& folder : {source(), target()}) std::filesystem::remove_all(folder);
    one.source.write(source());
    quantize(request_for(source(), target(), one.format));
  }
  VerifyReport against_source() const {
    VerifyOptions options;
    options.against = source();
    return verify_quietly(target(), options);
  }

  TempDir dir_;
};

TEST_F(Proof, RecordedBytesThatThisProgramRounded) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.rule);
    make(one);
    EXPECT_EQ(errors_of(verify_quietly(target()), one.rule), 0u);
    std::filesystem::remove(target() / "nibble.json");
    EXPECT_GT(errors_of(verify_quietly(target()), one.rule), 0u) << "the weights are not unusual enough";
  }
}

TEST_F(Proof, AComparisonWithBase) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.rule);
    make(one);
    std::filesystem::remove(target() / "nibble.json");
    const VerifyReport report = against_source();
    EXPECT_EQ(errors_of(report, one.rule), 0u);
    EXPECT_EQ(errors_of(report, "against"), 0u) << text_of(report.findings);
  }
}

// The bytes are those that were recorded, but nobody here chose them.
TEST_F(Proof, MovedWeightsAreJudgedAsTheirSource) {
  for (Case one : cases()) {
    SCOPED_TRACE(one.rule);
    one.source.quantize("compressed-tensors", one.format);
    make(one);
    EXPECT_EQ(errors_of(verify_quietly(target()), one.rule), errors_of(verify_quietly(source()), one.rule));
    EXPECT_GT(errors_of(verify_quietly(target()), one.rule), 0u);
  }
}

// A changed byte is no proof, and what is far from BASE is told why.
TEST_F(Proof, FaultsAreStillFound) {
  make({"scale-direction", "nvfp4", TinyCheckpoint::qwen3_moe()});
  TinyCheckpoint tiny = TinyCheckpoint::load(target());
  const std::string name = "model.layers.1.mlp.experts.3.up_proj.weight_global_scale";
  tiny.set_values(name, std::vector<float>{1 / tiny.values(name)[0]});
  tiny.write(target());
  ASSERT_TRUE(std::filesystem::exists(target() / "nibble.json"));
  for (const VerifyReport& report : {verify_quietly(target()), against_source()}) {
    const Findings found = of_rule(report, "scale-direction");
    ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
    EXPECT_EQ(found[0].tensor, name);
  }
}

}  // namespace
}  // namespace nibble
