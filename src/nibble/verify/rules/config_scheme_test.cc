#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

struct Case {
  const char *layout, *format, *key;
  std::function<void(Json& settings)> damage;
};

Json& group(Json& settings) { return settings["config_groups"]["group_0"]; }

TEST(ConfigScheme, WhatMakesLoadersMisreadIsAnError) {
  const std::vector<Case> cases = {
      {"compressed-tensors", "nvfp4", "format", [](Json& s) { s["format"] = "mxfp4-pack-quantized"; }},
      {"compressed-tensors", "nvfp4", "group_size", [](Json& s) { group(s)["weights"]["group_size"] = 32; }},
      {"compressed-tensors", "nvfp4", "targets", [](Json& s) { group(s)["targets"] = {"Conv2d"}; }},
      {"compressed-tensors", "nvfp4", "targets", [](Json& s) { group(s)["targets"] = Json::array(); }},
      {"compressed-tensors", "mxfp4", "format", [](Json& s) { s["format"] = "nvfp4-pack-quantized"; }},
      {"compressed-tensors", "int4-g32", "type", [](Json& s) { group(s)["weights"]["type"] = "float"; }},
      {"deepseek", "fp8-block", "fmt", [](Json& s) { s["fmt"] = "e5m2"; }}};
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(one.format) + " " + one.key);
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize(one.layout, one.format);
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "config-scheme").empty());
    one.damage(tiny.config()["quantization_config"]);
    const VerifyReport report = verify_tiny(tiny);
    const Findings found = of_rule(report, "config-scheme");
    ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
    EXPECT_EQ(found[0].severity, Severity::kError);
    EXPECT_EQ(value_of(found[0], "key"), one.key);
  }
}

TEST(ConfigScheme, WhatIsWrittenAndWhatIsLeftOpenPass) {
  for (const char* format : {"int4-g32", "int4-g32-asym", "mxfp4", "nvfp4", "mxfp8", "fp8-block", "fp8-channel"}) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize("compressed-tensors", format);
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "config-scheme").empty()) << format;
    Json& settings = tiny.config()["quantization_config"];
    settings["format"] = "mixed-precision";
    for (const char* key : {"type", "group_size"}) group(settings)["weights"].erase(key);
    group(settings)["targets"] = {"re:.*experts.*", "Conv2d"};
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "config-scheme").empty()) << format;
  }
}

TEST(ConfigScheme, LayersBeyondTheConfiguration) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "config-scheme").empty());
  tiny.config()["num_hidden_layers"] = 1;
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "config-scheme");
  ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(value_of(found[0], "beyond"), "1");
  EXPECT_TRUE(found[0].tensor.starts_with("model.layers.1.")) << found[0].tensor;
  // As DeepSeek's layer of multi-token prediction, of which the configuration need not speak.
  tiny.add("model.layers.1.eh_proj.weight", Dtype::kBF16, {4, 8}, std::vector<std::byte>(64, std::byte{1}));
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "config-scheme").empty());
}

}  // namespace
}  // namespace nibble
