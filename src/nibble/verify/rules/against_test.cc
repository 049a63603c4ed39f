#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/base/log.h"
#include "nibble/base/rng.h"
#include "nibble/verify/rederive_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

constexpr const char* kLayout = "compressed-tensors";

TEST(Against, GoodOnesPassInEveryFormat) {
  const TinyCheckpoint base = TinyCheckpoint::qwen3_moe();
  for (const char* format : {"int4-g32", "int4-g32-asym", "mxfp4", "nvfp4", "mxfp8", "fp8-block", "fp8-channel"}) {
    TinyCheckpoint tiny = base;
    tiny.quantize(kLayout, format);
    const VerifyReport report = verify_against(tiny, base);
    EXPECT_TRUE(of_rule(report, "against").empty()) << format << text_of(report.findings);
    EXPECT_TRUE(of_rule(report, "against-layer").empty()) << format;
    EXPECT_EQ(report.against.size(), 45u);
  }
}

// Weights on which rules of one format differ: the recorded one is the yardstick, and without a record none is blamed
// that may have been meant.
class AgainstRecord : public ::testing::Test {
 protected:
  using Draw = float (*)(float normal, size_t index);

  void SetUp() override { log::set_level(log::Level::kOff); }

  void make(Draw draw, const char* format, const char* rule, BitExact library) const {
    for (const Path& folder : {source(), target()}) std::filesystem::remove_all(folder);
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    for (const std::string& name : tiny.matching("*.mlp.experts.*")) {
      std::vector<float> values = tiny.values(name);
      for (size_t i = 0; i < values.size(); ++i) values[i] = draw(values[i], i);
      tiny.set_values(name, values);
    }
    tiny.write(source());
    QuantizeRequest request = request_for(source(), target(), format);
    request.bit_exact = library;
    request.rule =
        parse_rule(library == BitExact::kNone ? rule : bit_exact_rule(library, request.format), request.format);
    quantize(request);
  }
  VerifyReport verified() const {
    VerifyOptions options;
    options.against = source();
    return verify_quietly(target(), options);
  }
  Path source() const { return dir_ / "source"; }
  Path target() const { return dir_ / "target"; }

  TempDir dir_;
};

float ternary(float x, size_t) { return std::fabs(x) < 0.02f ? 0 : std::copysign(0.02f, x); }
float constant(float, size_t) { return 0.01f; }
float one_large(float x, size_t i) { return i == 0 ? 50 : x; }
float power_of_two(float x, size_t) { return std::copysign(std::exp2(std::round(std::log2(std::fabs(x) + 1e-9f))), x); }

TEST_F(AgainstRecord, TheRecordedRuleExplains) {
  struct Case {
    Draw draw;
    const char *format, *rule;
    BitExact library = BitExact::kNone;
  };
  const std::vector<Case> cases = {{ternary, "fp8-block", "fp8.ue8m0"},
                                   {constant, "fp8-block", "fp8.ue8m0"},
                                   {one_large, "fp8-block", "fp8.ue8m0"},
                                   {one_large, "nvfp4", "nv.single"},
                                   {power_of_two, "nvfp4", "nv.single"},
                                   {ternary, "nvfp4", "", BitExact::kCompressedTensors},
                                   {constant, "nvfp4", "", BitExact::kCompressedTensors}};
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(one.format) + " " + one.rule + " " + std::to_string(&one - cases.data()));
    make(one.draw, one.format, one.rule, one.library);
    EXPECT_TRUE(of_rule(verified(), "against").empty()) << text_of(of_rule(verified(), "against"));
    std::filesystem::remove(target() / "nibble.json");
    const VerifyReport report = verified();
    EXPECT_TRUE(report.ok) << text_of(report.findings);
    for (const Finding& finding : of_rule(report, "against")) EXPECT_EQ(finding.severity, Severity::kWarning);
  }
}

// Rows that no sample takes are the only ones that are not exact.
TEST_F(AgainstRecord, OneRowOfManyExplainsItself) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  std::vector<float> values = tiny.values("lm_head.weight");
  const size_t cols = tiny.at("lm_head.weight").shape[1];
  ASSERT_GT(values.size() / cols, 64u);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i / cols != 20) values[i] = 1;
  }
  tiny.set_values("lm_head.weight", values);
  tiny.write(source());
  QuantizeRequest request = request_for(source(), target(), "fp8-channel");
  request.include = {"name:lm_head.weight"};
  quantize(request);
  EXPECT_TRUE(of_rule(verified(), "against").empty()) << text_of(of_rule(verified(), "against"));
}

// Gate is random; up holds exact products of a smaller second-level scale than the one it has to share with gate.
TEST_F(AgainstRecord, ASharedSecondLevelExplainsWhatOneOfItsOwnWouldNot) {
  constexpr float kValues[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  for (const std::string& name : tiny.matching("*.mlp.experts.*.up_proj.weight")) {
    std::vector<float> values = tiny.values(name);
    for (size_t i = 0; i < values.size(); ++i) {
      const uint64_t block = random_bits(3, i / 16), code = random_bits(4, i);
      const float size = std::ldexp(8.0f + static_cast<float>(block % 8), static_cast<int>(block / 8 % 7) - 6);
      const float value = (i < 16 ? 448 : size) * (i % 16 == 0 ? 6 : kValues[code % 8]) * 0x1p-17f;
      values[i] = code % 16 < 8 ? value : -value;
    }
    tiny.set_values(name, values);
  }
  tiny.write(source());
  for (const char* rule : {"nv.two_level", "nv.four_six"}) {
    std::filesystem::remove_all(target());
    QuantizeRequest request = request_for(source(), target(), "nvfp4");
    request.rule = parse_rule(rule, request.format);
    quantize(request);
    for (const bool manifest : {true, false}) {
      if (!manifest) std::filesystem::remove(target() / "nibble.json");
      const Findings found = of_severity(verified(), Severity::kError);
      EXPECT_TRUE(found.empty()) << rule << " " << manifest << text_of(found);
    }
  }
}

TEST_F(AgainstRecord, WeightsOfAnotherProgramUnderASharedSecondLevel) {
  QuantizeRequest request = request_for(golden_dir() / "models" / "llama_gguf" / "model.gguf", target(), "nvfp4");
  request.rule = parse_rule("nv.four_six", request.format);
  quantize(request);
  VerifyOptions options;
  options.against = request.source;
  const VerifyReport report = verify_quietly(target(), options);
  EXPECT_TRUE(of_rule(report, "against").empty()) << text_of(of_rule(report, "against"));
}

// Its first rows are random and all others exact: the error of those and what explains it must be of the same rows.
TEST_F(AgainstRecord, AQuickComparisonExpectsOfTheRowsThatItHasCompared) {
  TinyOptions tall;
  tall.vocabulary = 512;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(tall);
  std::vector<float> values = tiny.values("lm_head.weight");
  for (size_t i = 64 * tiny.at("lm_head.weight").shape[1]; i < values.size(); ++i) values[i] = i % 32 == 0 ? 6 : 1;
  tiny.set_values("lm_head.weight", values);
  tiny.write(source());
  QuantizeRequest request = request_for(source(), target(), "mxfp4");
  request.include = {"name:lm_head.weight"};
  quantize(request);
  VerifyOptions options;
  options.against = source();
  for (const bool quick : {false, true}) {
    options.quick = quick;
    const VerifyReport report = verify_quietly(target(), options);
    EXPECT_TRUE(of_rule(report, "against").empty()) << quick << text_of(of_rule(report, "against"));
  }
}

TEST_F(AgainstRecord, AndNothingBeyondIt) {
  make(ternary, "fp8-block", "fp8.ue8m0", BitExact::kNone);
  TinyCheckpoint tiny = TinyCheckpoint::load(target());
  tiny.scale_values("model.layers.1.mlp.experts.2.up_proj.weight_scale", 1.25f);
  tiny.write(target());
  for (const bool manifest : {true, false}) {
    if (!manifest) std::filesystem::remove(target() / "nibble.json");
    const Findings found = of_severity(verified(), Severity::kError);
    const auto of_up = std::ranges::count_if(found, [](const Finding& f) {
      return f.rule == "against" && f.tensor == "model.layers.1.mlp.experts.2.up_proj.weight";
    });
    EXPECT_EQ(of_up, 1) << text_of(found);
  }
}

// The default rule is recorded, and another one's error is no excuse; a record that makes no sense is none.
TEST_F(AgainstRecord, AnotherRuleThanTheRecordedOneIsAFault) {
  make(ternary, "fp8-block", "fp8.ue8m0", BitExact::kNone);
  std::string text = read_text(target() / "nibble.json", 1 << 24);
  for (const auto& [name, errors] : {std::pair{"fp8.amaxx", 0}, {"fp8.amax", 21}}) {
    std::string changed = text;
    for (size_t at = 0; (at = changed.find("\"fp8.ue8m0\"", at)) != std::string::npos; ++at)
      changed.replace(at, 11, "\"" + std::string(name) + "\"");
    write_atomically(target() / "nibble.json", std::string_view(changed));
    const Findings found = of_rule(verified(), "against");
    EXPECT_EQ(std::ranges::count_if(found, [](const Finding& f) { return f.severity == Severity::kError; }), errors)
        << text_of(found);
  }
}

TEST(Against, C137_lists_layer_17_and_no_other) {
  TinyOptions options;
  options.layers = 40;
  const TinyCheckpoint base = TinyCheckpoint::qwen3_moe(options);
  TinyCheckpoint tiny = base;
  tiny.quantize(kLayout, "int4-g32");
  for (const std::string& name : tiny.matching("model.layers.17.mlp.experts.*weight_scale")) tiny.scale_values(name, 3);
  for (const bool quick : {false, true}) {
    VerifyOptions verify_options;
    verify_options.quick = quick;
    const VerifyReport report = verify_against(tiny, base, verify_options);
    EXPECT_FALSE(report.ok);
    const Findings layers = of_rule(report, "against-layer");
    ASSERT_EQ(layers.size(), 1u) << text_of(report.findings);
    EXPECT_EQ(value_of(layers[0], "layer"), "17");
    EXPECT_EQ(value_of(layers[0], "bad"), "12");
    const Findings rows = of_rule(report, "against");
    ASSERT_EQ(rows.size(), 12u);
    for (const Finding& row : rows) {
      EXPECT_TRUE(row.tensor.starts_with("model.layers.17.mlp.experts.")) << row.tensor;
      EXPECT_NEAR(std::stod(value_of(row, "rel_rmse")), 2.0, 0.15);
      EXPECT_NEAR(std::stod(value_of(row, "expected_rel_rmse")), 0.1, 0.05);
    }
    EXPECT_EQ(of_severity(report, Severity::kError).size(), 13u) << text_of(report.findings);
  }
}

TEST(Against, AKeptTensorThatHasChanged) {
  const TinyCheckpoint base = TinyCheckpoint::qwen3_moe();
  TinyCheckpoint tiny = base;
  tiny.quantize(kLayout, "nvfp4");
  tiny.scale_values("model.layers.0.self_attn.o_proj.weight", 1.01f);
  const Findings found = of_rule(verify_against(tiny, base), "against");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].tensor, "model.layers.0.self_attn.o_proj.weight");
}

TEST(Against, AnotherModelAndAnotherShape) {
  const TinyCheckpoint base = TinyCheckpoint::qwen3_moe();
  TinyCheckpoint other = base;
  other.rename("model.", "transformer.");
  other.rename("lm_head", "output_head");
  const VerifyReport report = verify_against(other, base);
  EXPECT_NE(text_of(of_rule(report, "against")).find("another model"), std::string::npos) << text_of(report.findings);

  TinyOptions wide;
  wide.vocabulary = 512;
  const Findings shapes = of_rule(verify_against(TinyCheckpoint::qwen3_moe(wide), base), "against");
  EXPECT_NE(text_of(shapes).find("[512, 64] here, [256, 64] in BASE"), std::string::npos) << text_of(shapes);
}

TEST(Against, StacksAreComparedExpertByExpert) {
  const TinyCheckpoint base = TinyCheckpoint::gpt_oss();
  TinyCheckpoint tiny = base;
  tiny.quantize("gpt-oss", "mxfp4", "*.mlp.experts.*_proj");
  const VerifyReport good = verify_against(tiny, base);
  EXPECT_TRUE(of_rule(good, "against").empty()) << text_of(good.findings);
  // Expert 2, gate: its rows are the even ones of 64; two scales a row.
  auto& scales = tiny.at("model.layers.1.mlp.experts.gate_up_proj_scales").data;
  for (size_t row = 0; row < 64; row += 2) {
    for (size_t block = 0; block < 2; ++block) {
      std::byte& scale = scales[(2 * 64 + row) * 2 + block];
      scale = static_cast<std::byte>(static_cast<uint8_t>(scale) + 2);
    }
  }
  const Findings found = of_rule(verify_against(tiny, base), "against");
  ASSERT_EQ(found.size(), 1u) << text_of(found);
  EXPECT_EQ(found[0].tensor, "model.layers.1.mlp.experts.gate_up_proj[2] gate");
}

}  // namespace
}  // namespace nibble
