#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/base/log.h"
#include "nibble/verify/rederive_for_test.h"

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

// Experts that --rule int4.extreme8 has quantized, from values that make zero blocks, or scales of one sign alone.
class SignedScales : public ::testing::Test {
 protected:
  using Draw = float (*)(float normal, size_t row, size_t col);

  void SetUp() override { log::set_level(log::Level::kOff); }

  void make(Draw draw) const {
    for (const Path& folder : {source(), target()}) std::filesystem::remove_all(folder);
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    for (const std::string& name : tiny.matching("*.mlp.experts.*")) {
      std::vector<float> values = tiny.values(name);
      const size_t cols = tiny.at(name).shape[1];
      for (size_t i = 0; i < values.size(); ++i) values[i] = draw(values[i], i / cols, i % cols);
      tiny.set_values(name, values);
    }
    tiny.write(source());
    QuantizeRequest request = request_for(source(), target(), "int4-g32");
    request.rule = parse_rule("int4.extreme8", request.format);
    quantize(request);
  }
  Path source() const { return dir_ / "source"; }
  Path target() const { return dir_ / "target"; }

  TempDir dir_;
};

TEST_F(SignedScales, AreMeantWhateverTheWeights) {
  const std::vector<std::pair<const char*, Draw>> good = {
      {"pruned rows", [](float x, size_t row, size_t) { return row % 2 == 0 ? 0 : x; }},
      {"positive", [](float x, size_t, size_t) { return std::fabs(x); }},
      {"constant", [](float, size_t, size_t) { return 0.01f; }},
      {"identity", [](float, size_t row, size_t col) { return row == col ? 1.0f : 0.0f; }},
      {"one hot", [](float, size_t row, size_t col) { return row == 3 && col == 5 ? 1.0f : 0.0f; }}};
  for (const auto& [what, draw] : good) {
    make(draw);
    for (const bool manifest : {true, false}) {
      if (!manifest) std::filesystem::remove(target() / "nibble.json");
      for (const bool quick : {false, true}) {
        VerifyOptions options;
        options.quick = quick;
        const VerifyReport report = verify_quietly(target(), options);
        EXPECT_TRUE(of_rule(report, "non-finite").empty())
            << what << " " << manifest << " " << quick << text_of(report.findings);
      }
    }
  }
}

// A rule that is recorded does not explain a block that it would not have made.
TEST_F(SignedScales, ButNotWhereNoCodeIsTheExtreme) {
  make([](float x, size_t, size_t) { return x; });
  TinyCheckpoint tiny = TinyCheckpoint::load(target());
  auto& codes = tiny.at(kUp + "weight_packed").data;
  std::vector<float> scales = tiny.values(kUp + "weight_scale");
  std::fill_n(codes.begin(), 16, std::byte{0x87});
  scales[0] = -std::fabs(scales[0]);
  tiny.set_values(kUp + "weight_scale", scales);
  tiny.write(target());
  for (const bool manifest : {true, false}) {
    if (!manifest) std::filesystem::remove(target() / "nibble.json");
    const Findings found = of_rule(verify_quietly(target()), "non-finite");
    ASSERT_EQ(found.size(), 1u) << manifest;
    EXPECT_EQ(found[0].tensor, kUp + "weight_scale");
  }
}

// No rule with zero points gives a scale its block's sign, and every block reaches either end.
TEST(NonFinite, NegativeScalesBesideZeroPoints) {
  for (const std::string_view which : {"one", "all"}) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize(kLayout, "int4-g32-asym");
    std::vector<float> scales = tiny.values(kUp + "weight_scale");
    for (size_t i = 0; i < scales.size(); ++i) {
      if (i == 5 || which == "all") scales[i] = -scales[i];
    }
    tiny.set_values(kUp + "weight_scale", scales);
    const Findings found = of_rule(verify_tiny(tiny), "non-finite");
    ASSERT_EQ(found.size(), 1u) << which;
    EXPECT_EQ(found[0].tensor, kUp + "weight_scale");
  }
}

// The same in checkpoints that other programs wrote.
TEST(NonFinite, NegativeScalesInLayoutsOfWords) {
  for (const char* model : {"linear_gptq", "linear_gptq_act_order", "linear_awq"}) {
    TinyCheckpoint tiny = TinyCheckpoint::load(golden_dir() / "models" / model);
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "non-finite").empty()) << model;
    const std::vector<std::string> scales = tiny.matching("*.scales");
    ASSERT_FALSE(scales.empty());
    for (const std::string& name : scales) tiny.scale_values(name, -1);
    EXPECT_EQ(of_rule(verify_tiny(tiny), "non-finite").size(), scales.size()) << model;
  }
}

// One block of many is too little for the comparison to show.
TEST(NonFinite, AComparisonDoesNotExcuseABlockThatNoRuleGives) {
  TinyOptions options;
  options.hidden = 256;
  options.intermediate = 128;
  const TinyCheckpoint base = TinyCheckpoint::qwen3_moe(options);
  TinyCheckpoint tiny = base;
  tiny.quantize(kLayout, "int4-g32");
  std::vector<float> scales = tiny.values(kUp + "weight_scale");
  const auto least = std::min_element(scales.begin(), scales.end());
  *least = -*least;
  tiny.set_values(kUp + "weight_scale", scales);
  const VerifyReport report = verify_against(tiny, base);
  EXPECT_TRUE(of_rule(report, "against").empty()) << text_of(report.findings);
  EXPECT_EQ(of_rule(report, "non-finite").size(), 1u) << text_of(report.findings);
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

// Scales that are numbers, and codes that are numbers: what they make together is none.
TEST(NonFinite, ProductsThatNothingHolds) {
  struct Case {
    const char *layout, *format, *scale;
    float value;   // of the first scale
    uint8_t byte;  // the same where scales are bytes
  };
  const std::vector<Case> cases = {
      {kLayout, "int4-g32", "weight_scale", 3e38f, 0},   {kLayout, "int4-g32-asym", "weight_scale", 3e38f, 0},
      {kLayout, "fp8-tensor", "weight_scale", 3e38f, 0}, {"deepseek", "fp8-block", "weight_scale_inv", 3e38f, 0},
      {"modelopt", "nvfp4", "weight_scale_2", 3e38f, 0}, {kLayout, "nvfp4", "weight_global_scale", 1e-38f, 0},
      {kLayout, "mxfp4", "weight_scale", 0, 254},        {kLayout, "mxfp8", "weight_scale", 0, 254}};
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(one.layout) + " " + one.format);
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize(one.layout, one.format);
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "non-finite").empty());
    const std::string name = kUp + one.scale;
    if (one.byte != 0) {
      tiny.at(name).data[0] = static_cast<std::byte>(one.byte);
    } else {
      set_float(tiny.at(name), 0, one.value);
    }
    const VerifyReport report = verify_tiny(tiny);
    const Findings found = of_rule(report, "non-finite");
    ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
    EXPECT_EQ(found[0].severity, Severity::kError);
    EXPECT_NE(value_of(found[0], "overflows"), "") << text_of(found);
    EXPECT_TRUE(found[0].tensor.starts_with(kUp)) << found[0].tensor;
  }
}

// The products are counted as decoding makes them.
TEST(NonFinite, ProductsAreCountedElementByElement) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize(kLayout, "mxfp4");
  auto& scales = tiny.at(kUp + "weight_scale").data;
  auto& codes = tiny.at(kUp + "weight_packed").data;
  scales[5] = std::byte{253};                                // 2^126: times 3 it is 2.55e38, times 4 it is 2^128
  std::fill_n(codes.begin() + 5 * 16, 16, std::byte{0x15});  // 3 and 0.5
  codes[5 * 16 + 4] = std::byte{0x6E};                       // -4 and 4
  EXPECT_EQ(value_of(of_rule(verify_tiny(tiny), "non-finite").at(0), "overflows"), "2");
  EXPECT_EQ(value_of(of_rule(verify_tiny(tiny), "non-finite").at(0), "first"), std::to_string(5 * 32 + 8));
  codes[5 * 16 + 4] = std::byte{0x15};
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "non-finite").empty());
}

}  // namespace
}  // namespace nibble
