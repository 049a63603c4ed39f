// Sources that are whole by their headers and hold what cannot be meant: refused with the place, never carried on.
#include <gtest/gtest.h>

#include <algorithm>

#include <cstring>
#include <nlohmann/json.hpp>

#include "nibble/base/log.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/folder.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using testing::thrown_error;
using testing::TinyCheckpoint;
using testing::value_of;

const std::string kModule = "model.layers.1.mlp.experts.2.up_proj.";

class BrokenSource : public ::testing::Test {
 protected:
  void SetUp() override { log::set_level(log::Level::kOff); }

  Error refusal(const TinyCheckpoint& source, const std::string& format, const std::string& layout = "") {
    std::filesystem::remove_all(dir_ / "source");
    std::filesystem::remove_all(dir_ / "target");
    source.write(dir_ / "source");
    QuantizeRequest request;
    request.source = dir_ / "source";
    request.target = dir_ / "target";
    request.format = parse_format(format);
    if (!request.format.is_dense()) request.rule = default_rule(request.format);
    request.layout = layout;
    request.quiet = true;
    return thrown_error([&] { quantize(request); });
  }
  static TinyCheckpoint with_scale(const std::string& layout, const std::string& format, const std::string& part,
                                   size_t at, uint8_t byte) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize(layout, format);
    tiny.at(kModule + part).data.at(at) = std::byte{byte};
    return tiny;
  }

  testing::TempDir dir_;
};

TEST_F(BrokenSource, ScaleThatIsNoNumber) {
  struct Case {
    const char *layout, *format, *part;
    size_t at;
    uint8_t byte;
  };
  // In little-endian BF16 and F32 a high byte of 0x7F makes a huge or no number of the usual scales: 0xFF a NaN.
  for (const Case& broken : {Case{"compressed-tensors", "mxfp4", "weight_scale", 3, 0xFF},
                             Case{"compressed-tensors", "mxfp8", "weight_scale", 3, 0xFF},
                             Case{"compressed-tensors", "nvfp4", "weight_scale", 5, 0x7F},
                             Case{"modelopt", "nvfp4", "weight_scale", 5, 0xFF},
                             Case{"compressed-tensors", "int4-g32", "weight_scale", 7, 0xFF}}) {
    const TinyCheckpoint source = with_scale(broken.layout, broken.format, broken.part, broken.at, broken.byte);
    for (const char* target : {"bf16", "nvfp4", "mxfp4", "mxfp8", "int4-g32", "fp8-channel"}) {
      const Error error = refusal(source, target);
      const std::string what = std::string(broken.format) + " to " + target + ": " + error.what();
      EXPECT_NE(error.tensor().find(kModule), std::string::npos) << what;
      EXPECT_NE(value_of(error, "row"), "(absent)") << what;
      EXPECT_NE(value_of(error, "column"), "(absent)") << what;
      EXPECT_FALSE(std::filesystem::exists(dir_ / "target/model.safetensors")) << what;
    }
  }
}

TEST_F(BrokenSource, ScaleThatIsNoNumberInAnExactCast) {
  TinyCheckpoint source = TinyCheckpoint::qwen3_moe();
  source.quantize("compressed-tensors", "nvfp4");
  for (const std::string& name : source.matching("*.experts.*.weight_scale"))
    std::ranges::fill(source.at(name).data, std::byte{0x38});  // 1: everything could be exact
  source.at(kModule + "weight_scale").data.at(5) = std::byte{0x7F};
  for (const char* target : {"fp8-block", "fp8-channel", "fp8-tensor"}) {
    const Error error = refusal(source, target);
    EXPECT_NE(error.message().find("no number"), std::string::npos) << error.what();
    EXPECT_EQ(error.tensor(), kModule + "weight_scale") << error.what();
  }
}

TEST_F(BrokenSource, SecondLevelScaleThatIsNoNumber) {
  TinyCheckpoint source = TinyCheckpoint::qwen3_moe();
  source.quantize("modelopt", "nvfp4");
  source.set_values(kModule + "weight_scale_2", std::vector<float>{std::numeric_limits<float>::quiet_NaN()});
  for (const char* target : {"bf16", "nvfp4", "mxfp4", "int4-g32"})
    EXPECT_NE(refusal(source, target).tensor().find(kModule), std::string::npos) << target;
  EXPECT_NE(refusal(source, "nvfp4", "compressed-tensors").tensor().find("weight_scale_2"), std::string::npos);
}

// Whether the weights are moved, cast or decoded: the output would look good (FORMATS.md §11.8).
TEST_F(BrokenSource, ScaleThatIsNotPositive) {
  struct Case {
    const char *layout, *format, *part;
    float value;
  };
  for (const Case& broken :
       {Case{"modelopt", "nvfp4", "weight_scale_2", -0.01f}, Case{"modelopt", "nvfp4", "weight_scale_2", 0.0f},
        Case{"compressed-tensors", "nvfp4", "weight_global_scale", -300.0f},
        Case{"compressed-tensors", "nvfp4", "weight_global_scale", 0.0f},
        Case{"deepseek", "fp8-block", "weight_scale_inv", -0.01f},
        Case{"deepseek", "fp8-block", "weight_scale_inv", 0.0f}}) {
    TinyCheckpoint source = TinyCheckpoint::qwen3_moe();
    source.quantize(broken.layout, broken.format);
    const size_t count = source.at(kModule + broken.part).data.size() / sizeof(float);
    source.set_values(kModule + broken.part, std::vector<float>(count, broken.value));
    for (const char* target : {"bf16", "nvfp4", "mxfp4", "int4-g32", "mxfp8", "fp8-channel", "fp8-block"}) {
      const Error error = refusal(source, target);
      const std::string what = std::string(broken.part) + " to " + target + ": " + error.what();
      EXPECT_EQ(error.tensor(), kModule + broken.part) << what;
      EXPECT_NE(error.message().find("a scale of the source is not positive"), std::string::npos) << what;
    }
  }
  for (const char* target : {"bf16", "nvfp4", "fp8-block", "int4-g32"}) {
    const Error negative = refusal(with_scale("modelopt", "nvfp4", "weight_scale", 5, 0xB8), target);
    EXPECT_EQ(value_of(negative, "value"), "-1") << target << negative.what();
    EXPECT_EQ(refusal(with_scale("modelopt", "nvfp4", "weight_scale", 5, 0x00), target).message(),
              "(nothing was thrown)");
  }
}

TEST_F(BrokenSource, CodeThatIsNoNumber) {
  TinyCheckpoint source = TinyCheckpoint::qwen3_moe();
  source.quantize("deepseek", "fp8-block");
  source.at(kModule + "weight").data.at(64 * 5 + 9) = std::byte{0x7F};
  for (const char* target : {"bf16", "nvfp4", "int4-g32"}) {
    const Error error = refusal(source, target);
    EXPECT_EQ(value_of(error, "row"), "5") << error.what();
    EXPECT_EQ(value_of(error, "column"), "9") << error.what();
  }
}

// Finite weights at the ends of float32: what a format cannot give back is refused, not written as infinities.
TEST_F(BrokenSource, WeightsBeyondTheFormat) {
  const auto filled = [](float value) {
    TinyCheckpoint source = TinyCheckpoint::qwen3_moe();
    source.set_values(kModule + "weight", std::vector<float>(size_t{32} * 64, value));
    return source;
  };
  const Error huge = refusal(filled(3.3e38f), "mxfp4");
  EXPECT_NE(huge.message().find("decode to infinity"), std::string::npos) << huge.what();
  EXPECT_EQ(huge.tensor(), kModule + "weight");
  EXPECT_EQ(value_of(huge, "row"), "0");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "target/model.safetensors"));
  for (const char* target : {"mxfp4", "nvfp4", "mxfp8", "int4-g32", "fp8-block", "fp8-channel", "fp8-tensor"})
    EXPECT_EQ(refusal(filled(1e30f), target).message(), "(nothing was thrown)") << target;
}

TEST_F(BrokenSource, NoTensorsAtAll) {
  TinyCheckpoint source = TinyCheckpoint::qwen3_moe();
  source.tensors().clear();
  source.config() = nullptr;
  EXPECT_NE(refusal(source, "bf16").message().find("no tensors"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "target"));
}

// Shapes without elements are legal and may claim any number of slices: copied as they are, in no time.
TEST_F(BrokenSource, ShapesWithoutElements) {
  TinyCheckpoint source = TinyCheckpoint::qwen3_moe();
  const std::vector<std::vector<uint64_t>> shapes{
      {0}, {0, 4}, {4, 0}, {0, 4, 4}, {4, 0, 4}, {uint64_t{1} << 40, 4, 0}, {0, UINT64_MAX, UINT64_MAX}};
  for (size_t i = 0; i < shapes.size(); ++i) source.add("empty." + std::to_string(i), Dtype::kBF16, shapes[i], {});
  for (const char* target : {"bf16", "nvfp4"}) {
    EXPECT_EQ(refusal(source, target).message(), "(nothing was thrown)");
    const TinyCheckpoint out = TinyCheckpoint::load(dir_ / "target");
    for (size_t i = 0; i < shapes.size(); ++i) {
      TinyCheckpoint copy = out;
      ASSERT_TRUE(copy.has("empty." + std::to_string(i)));
      EXPECT_EQ(copy.at("empty." + std::to_string(i)).shape, shapes[i]);
    }
  }
}

}  // namespace
}  // namespace nibble
