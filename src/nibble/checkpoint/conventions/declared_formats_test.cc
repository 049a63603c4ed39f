#include "nibble/checkpoint/conventions/declared_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/file.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;

DeclaredFormats released(const std::string& model) {
  const std::string name = model + ".json";
  return {read_json(Path(NIBBLE_SOURCE_DIR) / "data" / "models" / name), name};
}

DeclaredFormats settings(const std::string& text, const std::string& side = "null") {
  return {parse_json(R"({"quantization_config": )" + text + "}", "config.json"), "config.json",
          parse_json(side, "hf_quant_config.json"), "hf_quant_config.json"};
}

// "-": 16 bits.
std::string name_of(const DeclaredFormats& declared, const std::string& module) {
  const auto format = declared.of(module);
  return format ? format->name : "-";
}

std::string error_of(const std::string& text) {
  try {
    settings(text);
  } catch (const Error& error) {
    EXPECT_FALSE(error.ways_out().empty()) << text;
    EXPECT_EQ(error.file(), "config.json") << text;
    return error.what();
  }
  return "no error";
}

std::string group(const std::string& weights, const std::string& rest = "") {
  return R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["Linear"], "weights": )" +
         weights + "}}" + rest + "}";
}

TEST(DeclaredFormats, NothingDeclared) {
  const DeclaredFormats declared(parse_json(R"({"model_type": "qwen3_moe"})", "c"), "c");
  EXPECT_FALSE(declared.any());
  EXPECT_EQ(declared.of("model.layers.0.mlp.experts.0.gate_proj"), std::nullopt);
  EXPECT_FALSE(DeclaredFormats(Json(), "c").any());
}

TEST(DeclaredFormats, FormatsFamiliesNameTheSameThings) {
  const DeclaredFormats kimi = released("kimi-k2.5");
  const auto format = kimi.of("language_model.model.layers.1.mlp.experts.0.gate_proj");
  ASSERT_TRUE(format);
  EXPECT_EQ(*format, parse_format("int4-g32"));
  const auto block = released("deepseek-v3").of("model.layers.3.mlp.experts.0.gate_proj");
  ASSERT_TRUE(block);
  EXPECT_EQ(*block, parse_format("fp8-block"));
}

// Settings under text_config name modules inside the wrapper or not: "lm_head", "re:.*self_attn.*".
TEST(DeclaredFormats, Kimi) {
  const DeclaredFormats k25 = released("kimi-k2.5");
  EXPECT_EQ(name_of(k25, "language_model.lm_head"), "-");
  EXPECT_EQ(name_of(k25, "language_model.model.layers.1.self_attn.o_proj"), "-");
  EXPECT_EQ(name_of(k25, "language_model.model.layers.1.mlp.shared_experts.up_proj"), "-");
  EXPECT_EQ(name_of(k25, "language_model.model.layers.0.mlp.up_proj"), "-");
  const DeclaredFormats k3 = released("kimi-k3");
  EXPECT_EQ(name_of(k3, "language_model.model.layers.1.block_sparse_moe.experts.0.w1"), "mxfp4");
  EXPECT_EQ(name_of(k3, "language_model.lm_head"), "-");
  const DeclaredFormats nv = released("kimi-k2.5-nvfp4");
  EXPECT_EQ(name_of(nv, "language_model.lm_head"), "-");
  EXPECT_EQ(name_of(nv, "language_model.model.layers.10.self_attn.o_proj"), "-");
  EXPECT_EQ(name_of(nv, "language_model.model.layers.10.mlp.shared_experts.up_proj"), "nvfp4");
}

TEST(DeclaredFormats, BlocksOfTheDeepseekFamily) {
  const DeclaredFormats v3 = released("deepseek-v3");
  EXPECT_EQ(name_of(v3, "lm_head"), "-");
  EXPECT_EQ(name_of(v3, "model.layers.0.self_attn.kv_b_proj"), "fp8-block");
  // Says ue8m0 and stores float32 (conventions/deepseek.cc).
  const DeclaredFormats v32 = released("deepseek-v3.2");
  EXPECT_EQ(v32.of("model.layers.0.self_attn.o_proj")->scale, ScaleType::kF32);
  EXPECT_EQ(name_of(v32, "model.layers.0.self_attn.indexer.weights_proj"), "-");
  EXPECT_EQ(name_of(v32, "model.layers.0.self_attn.indexer.wq_b"), "fp8-block");
}

TEST(DeclaredFormats, DeepseekV4HasBytesAsScalesAndFourBitExperts) {
  for (const char* model : {"deepseek-v4-flash", "deepseek-v4-pro", "deepseek-v4.1-flash"}) {
    const DeclaredFormats declared = released(model);
    EXPECT_EQ(name_of(declared, "layers.0.ffn.experts.0.w1"), "mxfp4");
    EXPECT_EQ(name_of(declared, "mtp.0.ffn.experts.0.w1"), "mxfp4");
    const auto rest = declared.of("layers.0.ffn.shared_experts.w1");
    ASSERT_TRUE(rest);
    EXPECT_EQ(rest->scale, ScaleType::kE8M0);
    EXPECT_EQ(rest->name, model == std::string("deepseek-v4.1-flash") ? "fp8-block32x32" : "fp8-block");
    EXPECT_EQ(name_of(declared, "head"), "-");
  }
}

// Only the experts were quantized again: what that tool ignored keeps the settings that the release had before.
TEST(DeclaredFormats, AnExportOfExpertsAlone) {
  const DeclaredFormats declared = released("deepseek-v4-flash-nvfp4");
  EXPECT_EQ(name_of(declared, "layers.42.ffn.experts.0.w1"), "nvfp4");
  EXPECT_EQ(name_of(declared, "layers.42.ffn.shared_experts.w1"), "fp8-block");
  EXPECT_EQ(name_of(declared, "layers.42.attn.wq_a"), "fp8-block");
  EXPECT_EQ(name_of(declared, "mtp.0.ffn.experts.0.w1"), "mxfp4");
  EXPECT_EQ(name_of(declared, "head"), "-");
}

TEST(DeclaredFormats, MimoStoresExpertsOtherwise) {
  const DeclaredFormats v26 = released("mimo-v2.6-flash");
  EXPECT_EQ(name_of(v26, "model.layers.1.mlp.experts.0.gate_proj"), "mxfp4");
  EXPECT_EQ(name_of(v26, "model.layers.1.self_attn.q_proj"), "fp8-block");
  const DeclaredFormats v25 = released("mimo-v2.5-pro");
  EXPECT_EQ(name_of(v25, "model.layers.1.mlp.experts.0.gate_proj"), "fp8-block");
  EXPECT_EQ(name_of(v25, "model.layers.1.self_attn.o_proj"), "-");
}

TEST(DeclaredFormats, GptOssQuantizesExpertsOnly) {
  const DeclaredFormats declared = released("gpt-oss-20b");
  EXPECT_EQ(name_of(declared, "model.layers.0.mlp.experts.0.gate_proj"), "mxfp4");
  for (const char* module : {"model.layers.0.self_attn.q_proj", "model.layers.0.mlp.router", "lm_head"})
    EXPECT_EQ(name_of(declared, module), "-") << module;
}

TEST(DeclaredFormats, BarePartsOfNames) {
  const DeclaredFormats declared = released("minimax-m2.5");
  EXPECT_EQ(name_of(declared, "model.layers.3.block_sparse_moe.gate"), "-");
  EXPECT_EQ(name_of(declared, "lm_head"), "-");
  EXPECT_EQ(name_of(declared, "model.layers.3.block_sparse_moe.experts.0.w1"), "fp8-block");
}

TEST(DeclaredFormats, ModeloptListsLayersOneByOne) {
  const DeclaredFormats m3 = released("minimax-m3-nvfp4");
  EXPECT_EQ(name_of(m3, "language_model.model.layers.10.block_sparse_moe.experts.0.w1"), "nvfp4");
  EXPECT_EQ(name_of(m3, "language_model.model.layers.10.block_sparse_moe.shared_experts.up_proj"), "mxfp8");
  EXPECT_EQ(name_of(m3, "language_model.model.layers.10.block_sparse_moe.gate"), "-");
  EXPECT_EQ(name_of(m3, "language_model.lm_head"), "-");
  const DeclaredFormats qwen = released("qwen3.6-35b-a3b-nvfp4");
  EXPECT_EQ(name_of(qwen, "model.language_model.layers.3.mlp.experts.0.down_proj"), "nvfp4");
  EXPECT_EQ(name_of(qwen, "model.language_model.layers.3.self_attn.q_proj"), "fp8-tensor");
  EXPECT_EQ(name_of(qwen, "model.language_model.layers.0.linear_attn.in_proj_a"), "-");
  EXPECT_EQ(name_of(qwen, "lm_head"), "nvfp4");
  EXPECT_EQ(name_of(qwen, "mtp.layers.0.mlp.experts.0.down_proj"), "-");
  const DeclaredFormats nemotron = released("nemotron-3.5-lightning-30b-a3b-nvfp4");
  EXPECT_EQ(name_of(nemotron, "backbone.layers.1.mixer.experts.0.up_proj"), "nvfp4");
  EXPECT_EQ(name_of(nemotron, "backbone.layers.0.mixer.in_proj"), "fp8-tensor");
}

TEST(DeclaredFormats, EntriesAreContainers) {
  const DeclaredFormats declared = settings(R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
    "quantized_layers": {"experts.*": {"quant_algo": "NVFP4"}, "model.layers.1.mlp.experts": {"quant_algo": "MXFP8"},
                         "model.layers.*.self_attn": {"quant_algo": "FP8"}}})");
  EXPECT_EQ(name_of(declared, "model.layers.0.mlp.experts.0.up_proj"), "nvfp4");
  EXPECT_EQ(name_of(declared, "model.layers.0.self_attn.q_proj"), "fp8-tensor");
  EXPECT_EQ(name_of(declared, "model.layers.0.mlp.shared_experts.up_proj"), "-");
  EXPECT_EQ(declared.named("model.layers.0.self_attn.q_proj")->name, "fp8-tensor");
  EXPECT_EQ(released("deepseek-v3").named("model.layers.0.self_attn.o_proj"), std::nullopt);
}

TEST(DeclaredFormats, TheSideFile) {
  const DeclaredFormats declared = settings(
      "null", R"({"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}})");
  EXPECT_EQ(name_of(declared, "model.layers.0.mlp.experts.0.up_proj"), "nvfp4");
  EXPECT_EQ(name_of(declared, "lm_head"), "-");
}

TEST(DeclaredFormats, GroupsOfCompressedTensors) {
  const auto first = [](const std::string& weights) { return name_of(settings(group(weights)), "m.q_proj"); };
  EXPECT_EQ(first(R"({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 64, "symmetric": false})"),
            "int4-g64-asym");
  EXPECT_EQ(first(R"({"num_bits": 8, "type": "int", "strategy": "channel"})"), "int8-channel");
  EXPECT_EQ(first(R"({"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16})"), "nvfp4");
  EXPECT_EQ(first(R"({"num_bits": 4, "type": "float", "group_size": 32})"), "mxfp4");
  EXPECT_EQ(first(R"({"num_bits": 8, "type": "float", "group_size": 32, "scale_dtype": "torch.uint8"})"), "mxfp8");
  EXPECT_EQ(first(R"({"num_bits": 8, "type": "float", "strategy": "channel"})"), "fp8-channel");
  EXPECT_EQ(first(R"({"num_bits": 8, "type": "float"})"), "fp8-tensor");
  EXPECT_EQ(
      name_of(settings(R"({"quant_method": "compressed-tensors", "config_groups": {"W4A16": ["Linear"]}})"), "m.q"),
      "int4-g128");
  // Nothing is left out there that is not listed.
  EXPECT_EQ(name_of(settings(group(R"({"num_bits": 8, "type": "float"})")), "lm_head"), "fp8-tensor");
}

TEST(DeclaredFormats, WordPackedMethods) {
  const std::string sizes = R"("bits": 4, "group_size": 128})";
  EXPECT_EQ(name_of(settings(R"({"quant_method": "awq", )" + sizes), "m.q_proj"), "int4-g128-asym");
  EXPECT_EQ(name_of(settings(R"({"quant_method": "gptq", )" + sizes), "m.q_proj"), "int4-g128-asym");
  EXPECT_EQ(name_of(settings(R"({"quant_method": "gptq", )" + sizes), "lm_head"), "-");
}

TEST(DeclaredFormats, WhatIsNotKnownIsAnError) {
  EXPECT_THAT(error_of(R"({"quant_method": "bitsandbytes"})"), HasSubstr("key quant_method, value bitsandbytes"));
  EXPECT_THAT(error_of(R"({"bogus": 1})"), HasSubstr("key quant_method, value missing"));
  EXPECT_THAT(error_of(R"({"quant_method": "fp8", "fmt": "e5m2"})"), HasSubstr("key fmt, value e5m2"));
  EXPECT_THAT(error_of(R"({"quant_method": "fp8", "scale_fmt": 7})"), HasSubstr("key scale_fmt, value 7"));
  EXPECT_THAT(error_of(R"({"quant_method": "fp8", "store_dtype": "mxfp6"})"),
              HasSubstr("key store_dtype, value mxfp6"));
  EXPECT_THAT(error_of(R"({"quant_method": "fp8", "expert_dtype": "fp3"})"), HasSubstr("key expert_dtype, value fp3"));
  EXPECT_THAT(error_of(R"({"quant_method": "modelopt", "quant_algo": "NVFP3"})"), HasSubstr("value NVFP3"));
  EXPECT_THAT(error_of(R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 64})"),
              HasSubstr("NVFP4 with group_size 64"));
  EXPECT_THAT(error_of(R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"})"),
              HasSubstr("MIXED_PRECISION without quantized_layers"));
  EXPECT_THAT(
      error_of(R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {"a": 3}})"),
      HasSubstr("key quantized_layers.a, value 3"));
  EXPECT_THAT(error_of(R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": [1]})"),
              HasSubstr("value [1]"));
  EXPECT_THAT(error_of(group(R"({"num_bits": 3, "type": "int", "group_size": 32})")), HasSubstr("num_bits 3"));
  EXPECT_THAT(error_of(R"({"quant_method": "compressed-tensors", "config_groups": {"FP9": ["Linear"]}})"),
              HasSubstr("config_groups.FP9"));
  EXPECT_THAT(error_of(R"({"quant_method": "compressed-tensors"})"), HasSubstr("key config_groups"));
  EXPECT_THAT(error_of(R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["Conv2d"],
    "weights": {"num_bits": 8, "type": "float"}}}})"),
              HasSubstr("key config_groups.g.targets, value Conv2d"));
}

TEST(DeclaredFormats, MalformedSettingsAreOneError) {
  EXPECT_THAT(error_of("7"), HasSubstr("should be an object"));
  EXPECT_THAT(error_of(R"({"quant_method": "fp8", "weight_block_size": [0, 128]})"), HasSubstr("weight_block_size"));
  EXPECT_THAT(error_of(R"({"quant_method": "fp8", "ignored_layers": "lm_head"})"), HasSubstr("a list of names"));
  const std::string weights = R"({"num_bits": 8, "type": "float"})";
  EXPECT_THAT(error_of(group(weights, R"(, "ignore": ["re:("])")), HasSubstr("entry re:("));
}

TEST(DeclaredFormats, HostileListsAreRefused) {
  const std::string weights = R"({"num_bits": 8, "type": "float"})";
  const auto list = [&](const std::string& entry, int count) {
    Json names = Json::array();
    for (int i = 0; i < count; ++i) names.push_back(entry + std::to_string(i));
    return group(weights, R"(, "ignore": )" + names.dump());
  };
  EXPECT_THAT(error_of(list("re:a", 10'000)), HasSubstr("too many regular expressions"));
  EXPECT_THAT(error_of(list("re:(a{100}|b{100}){5}", 100)), HasSubstr("too long to compare"));
  EXPECT_THAT(error_of(list("*a*b*c", 10'000)), HasSubstr("too long to compare"));
  EXPECT_EQ(error_of(list("model.layers.3.mlp.experts.", 20'000)), "no error");
}

}  // namespace
}  // namespace nibble
