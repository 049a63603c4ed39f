#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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
      {"compressed-tensors", "mxfp4", "format", [](Json& s) { s["format"] = "mxfp8-quantized"; }},
      {"compressed-tensors", "int4-g32", "format", [](Json& s) { s["format"] = "int-quantized"; }},
      {"compressed-tensors", "nvfp4", "format", [](Json& s) { s["format"] = "naive-quantized"; }},
      {"compressed-tensors", "fp8-block", "format", [](Json& s) { s["format"] = "dense"; }},
      {"compressed-tensors", "mxfp8", "num_bits", [](Json& s) { group(s)["weights"]["num_bits"] = 4; }},
      {"compressed-tensors", "nvfp4", "strategy", [](Json& s) { group(s)["weights"]["strategy"] = "group"; }},
      {"compressed-tensors", "mxfp4", "strategy", [](Json& s) { group(s)["weights"]["strategy"] = "tensor_group"; }},
      {"compressed-tensors", "int4-g32", "strategy", [](Json& s) { group(s)["weights"]["strategy"] = "tensor"; }},
      {"compressed-tensors", "int4-g32", "strategy", [](Json& s) { group(s)["weights"]["strategy"] = "block"; }},
      {"compressed-tensors", "fp8-channel", "strategy", [](Json& s) { group(s)["weights"]["strategy"] = "tensor"; }},
      {"compressed-tensors", "fp8-tensor", "strategy", [](Json& s) { group(s)["weights"]["strategy"] = "channel"; }},
      {"compressed-tensors", "int4-g32-asym", "symmetric", [](Json& s) { group(s)["weights"]["symmetric"] = true; }},
      {"compressed-tensors", "mxfp4", "targets", [](Json& s) { group(s)["targets"] = {"re:nothing.*"}; }},
      {"compressed-tensors", "mxfp4", "targets",
       [](Json& s) { group(s)["targets"] = {"model.layers.0.self_attn.q_proj"}; }},
      {"compressed-tensors", "mxfp4", "config_groups", [](Json& s) { s.erase("config_groups"); }},
      {"compressed-tensors", "mxfp4", "config_groups", [](Json& s) { s["config_groups"] = Json::object(); }},
      {"deepseek", "fp8-block", "scale_fmt", [](Json& s) { s["scale_fmt"] = "ue8m0"; }},
      {"deepseek", "fp8-block", "fmt", [](Json& s) { s["fmt"] = "E5M2"; }},
      {"deepseek", "fp8-block", "fmt", [](Json& s) { s["fmt"] = "int8"; }},
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
  for (const char* format : {"int4-g32", "int4-g32-asym", "int4-channel", "mxfp4", "nvfp4", "mxfp8", "fp8-block",
                             "fp8-channel", "fp8-tensor"}) {
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

TEST(ConfigScheme, DeclarationsThatComeToTheSame) {
  const std::vector<Case> cases = {
      {"compressed-tensors", "fp8-channel", "format", [](Json& s) { s["format"] = "naive-quantized"; }},
      {"compressed-tensors", "fp8-block", "strategy", [](Json& s) { group(s)["weights"]["strategy"] = "tensor"; }},
      {"compressed-tensors", "int4-g32", "targets", [](Json& s) { group(s)["targets"] = {"re:(?!lm_head).*"}; }},
      {"compressed-tensors", "int4-g32", "targets",
       [](Json& s) { group(s)["targets"] = {"language_model.model.layers.0.mlp.experts.0.up_proj"}; }},
      {"compressed-tensors", "int4-g32", "targets", [](Json& s) { group(s)["targets"] = {"SomeExperts"}; }},
      {"compressed-tensors", "mxfp4", "preset",
       [](Json& s) {
         s["config_groups"] = Json::object();
         s["config_groups"]["MXFP4"] = Json::array({"Linear"});
       }},
      {"deepseek", "fp8-block", "fmt", [](Json& s) { s["fmt"] = "float8_e4m3fn"; }},
      {"deepseek", "fp8-block", "weight_block_size", [](Json& s) { s["weight_block_size"] = {64, 64}; }}};
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(one.format) + " " + one.key);
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize(one.layout, one.format);
    one.damage(tiny.config()["quantization_config"]);
    const VerifyReport report = verify_tiny(tiny);
    EXPECT_TRUE(of_rule(report, "config-scheme").empty()) << text_of(report.findings);
  }
}

// Weights of one block come with one scale whatever the size of blocks is called, up to that of the weight.
TEST(ConfigScheme, BlocksOfAnotherSizeThanTheScales) {
  for (const char* layout : {"deepseek", "compressed-tensors"}) {
    TinyOptions options;
    options.hidden = 128;
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
    tiny.quantize(layout, "fp8-block");
    Json& settings = tiny.config()["quantization_config"];
    const bool groups = settings.contains("config_groups");
    Json& blocks = groups ? group(settings)["weights"]["block_structure"] : settings["weight_block_size"];
    for (const auto& [size, errors] : {std::pair(256, 0u), {128, 0u}, {64, 1u}}) {
      blocks = {size, size};
      const Findings found = of_rule(verify_tiny(tiny), "config-scheme");
      EXPECT_EQ(found.size(), errors) << layout << " " << size << text_of(found);
      for (const Finding& finding : found)
        EXPECT_EQ(value_of(finding, "key"), groups ? "block_structure" : "weight_block_size");
    }
  }
}

Findings of_modelopt(TinyCheckpoint tiny, Json settings) {
  settings["quant_method"] = "modelopt";
  tiny.config()["quantization_config"] = std::move(settings);
  return of_rule(verify_tiny(tiny), "config-scheme");
}

// Loaders of ModelOpt's exports choose what they read by the algorithm's name alone.
TEST(ConfigScheme, AnAlgorithmOtherThanWhatIsStored) {
  TinyCheckpoint pairs = TinyCheckpoint::qwen3_moe();
  pairs.quantize("modelopt", "nvfp4");
  TinyCheckpoint bytes = TinyCheckpoint::qwen3_moe();
  bytes.quantize("compressed-tensors", "fp8-tensor");
  TinyCheckpoint rows = TinyCheckpoint::qwen3_moe();
  rows.quantize("compressed-tensors", "fp8-channel");
  const Json experts = Json::object({{"quant_algo", "FP8"}});
  const Json mixed = {{"quant_algo", "MIXED_PRECISION"},
                      {"quantized_layers", {{"model.layers.0.mlp.experts", experts}}}};
  const std::vector<std::tuple<TinyCheckpoint*, Json, std::string, std::string>> cases = {
      {&pairs, {{"quant_algo", "FP8"}}, "fp8-tensor", "nvfp4"},
      {&pairs, {{"quant_algo", "W4A8_MXFP4_FP8"}}, "mxfp4", "nvfp4"},
      {&pairs, mixed, "fp8-tensor", "nvfp4"},
      {&bytes, {{"quant_algo", "W4A16_NVFP4"}}, "nvfp4", "fp8-tensor"},
      {&bytes, {{"quant_algo", "FP8_PER_CHANNEL_PER_TOKEN"}}, "fp8-channel", "fp8-tensor"},
      {&bytes, {{"quant_algo", "MXFP8"}}, "mxfp8", "fp8-tensor"},
      {&rows, {{"quant_algo", "FP8"}}, "fp8-tensor", "fp8-channel"}};
  for (const auto& [tiny, settings, declared, stored] : cases) {
    SCOPED_TRACE(settings.dump());
    const Findings found = of_modelopt(*tiny, settings);
    ASSERT_EQ(found.size(), 1u) << text_of(found);
    EXPECT_EQ(found[0].severity, Severity::kError);
    EXPECT_EQ(value_of(found[0], "key"), "quant_algo");
    EXPECT_EQ(value_of(found[0], "declared"), declared);
    EXPECT_EQ(value_of(found[0], "stored"), stored);
  }
}

TEST(ConfigScheme, AlgorithmsThatFitAndThoseNotKnown) {
  TinyCheckpoint pairs = TinyCheckpoint::qwen3_moe();
  pairs.quantize("modelopt", "nvfp4");
  TinyCheckpoint bytes = TinyCheckpoint::qwen3_moe();
  bytes.quantize("compressed-tensors", "fp8-tensor");
  for (const char* algorithm : {"NVFP4", "W4A16_NVFP4", "W4A8_NVFP4_FP8", "SOMETHING_NEW"})
    EXPECT_TRUE(of_modelopt(pairs, {{"quant_algo", algorithm}}).empty()) << algorithm;
  EXPECT_TRUE(of_modelopt(bytes, {{"quant_algo", "FP8"}}).empty());
  const Json experts = Json::object({{"quant_algo", "NVFP4"}});
  EXPECT_TRUE(of_modelopt(pairs, {{"quant_algo", "MIXED_PRECISION"},
                                  {"quantized_layers", {{"model.layers.0.mlp.experts", experts}}}})
                  .empty());
}

// transformers takes 128 x 128 where nothing is said, others one scale for the matrix.
TEST(ConfigScheme, BlocksThatNothingDeclares) {
  TinyOptions options;
  options.hidden = 256;
  for (const bool many : {false, true}) {
    TinyCheckpoint tiny = many ? TinyCheckpoint::qwen3_moe(options) : TinyCheckpoint::qwen3_moe();
    tiny.quantize("deepseek", "fp8-block");
    Json& settings = tiny.config()["quantization_config"];
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "config-scheme").empty());
    settings.erase("weight_block_size");
    const Findings found = of_rule(verify_tiny(tiny), "config-scheme");
    ASSERT_EQ(found.size(), many ? 1u : 0u) << text_of(found);
    if (!many) continue;
    EXPECT_EQ(found[0].severity, Severity::kWarning);
    EXPECT_EQ(value_of(found[0], "key"), "weight_block_size");
    EXPECT_EQ(value_of(found[0], "declared"), "missing");
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
