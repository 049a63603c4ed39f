#include "nibble/checkpoint/quant_hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Read {
  QuantHints hints;
  Findings findings;
};

Read read(const std::string& config, const std::string& side = "null",
          const std::string& side_name = "hf_quant_config.json") {
  Read result;
  result.hints = read_quant_hints(parse_json(config, "config.json"), "config.json", parse_json(side, side_name),
                                  side_name, &result.findings);
  return result;
}

QuantHints clean(const std::string& config, const std::string& side = "null",
                 const std::string& side_name = "hf_quant_config.json") {
  const Read result = read(config, side, side_name);
  EXPECT_THAT(result.findings, IsEmpty());
  return result.hints;
}

constexpr const char* kKimi =
    R"({"text_config":{"quantization_config":{"config_groups":{"group_0":{"input_activations":null,
  "output_activations":null,"targets":["Linear"],"weights":{"actorder":null,"block_structure":null,"dynamic":false,
  "group_size":32,"num_bits":4,"observer":"minmax","observer_kwargs":{},"strategy":"group","symmetric":true,"type":"int"}}},
  "format":"pack-quantized","ignore":["lm_head","re:.*self_attn.*"],"kv_cache_scheme":null,
  "quant_method":"compressed-tensors","quantization_status":"compressed"}}})";

TEST(QuantHints, NoneAtAll) {
  const QuantHints hints = clean(R"({"model_type":"qwen3_moe"})");
  EXPECT_EQ(hints.source, "");
  EXPECT_EQ(hints.method, "");
  EXPECT_EQ(clean("null").source, "");
  EXPECT_EQ(clean(R"({"quantization_config":null})").source, "");
  EXPECT_EQ(clean(R"({"quantization_config":{}})").source, "");
}

TEST(QuantHints, CompressedTensorsUnderTextConfig) {
  const QuantHints hints = clean(kKimi);
  EXPECT_EQ(hints.source, "config.json");
  EXPECT_EQ(hints.method, "compressed-tensors");
  EXPECT_EQ(hints.algorithm, "pack-quantized");
  EXPECT_EQ(hints.bits, 4u);
  EXPECT_EQ(hints.group_size, 32);
  EXPECT_EQ(hints.symmetric, true);
  EXPECT_FALSE(hints.desc_act);
  EXPECT_EQ(hints.block_rows, 0u);
  EXPECT_THAT(hints.excluded, ElementsAre("lm_head", "re:.*self_attn.*"));
  EXPECT_EQ(hints.other_source, "");
}

TEST(QuantHints, CompressedTensorsGroupsThatDiffer) {
  const QuantHints hints =
      clean(R"({"quantization_config":{"quant_method":"compressed-tensors","format":"mixed-precision",
    "config_groups":{"a":{"format":"pack-quantized","targets":["x"],"weights":{"num_bits":4,"group_size":32,"symmetric":true,"actorder":"group"}},
                     "b":{"format":"float-quantized","targets":["y"],"weights":{"num_bits":8,"strategy":"block","block_structure":[128,128],"symmetric":true}},
                     "c":{"targets":["z"],"weights":null}}}})");
  EXPECT_EQ(hints.bits, 0u);
  EXPECT_FALSE(hints.group_size);
  EXPECT_EQ(hints.block_rows, 0u);
  EXPECT_EQ(hints.symmetric, true);
  EXPECT_FALSE(hints.desc_act);
  EXPECT_EQ(hints.algorithm, "mixed-precision");
}

TEST(QuantHints, CompressedTensorsBlocksChannelsAndPresets) {
  const auto weights = [](const std::string& text) {
    return clean(
        R"({"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"g":{"format":"float-quantized","weights":)" +
        text + "}}}}");
  };
  const QuantHints block = weights(R"({"num_bits":8,"strategy":"block","block_structure":"128x64"})");
  EXPECT_EQ(block.block_rows, 128u);
  EXPECT_EQ(block.block_cols, 64u);
  EXPECT_EQ(block.algorithm, "float-quantized");
  EXPECT_EQ(weights(R"({"num_bits":8,"strategy":"channel"})").group_size, -1);
  EXPECT_EQ(weights(R"({"num_bits":4,"group_size":32,"actorder":"dynamic"})").desc_act, true);
  EXPECT_EQ(weights(R"({"num_bits":4,"group_size":32,"actorder":"static"})").desc_act, false);
  const QuantHints preset =
      clean(R"({"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"NVFP4":["Linear"]}}})");
  EXPECT_EQ(preset.bits, 4u);
  EXPECT_EQ(preset.group_size, 16);
  EXPECT_EQ(preset.algorithm, "NVFP4");
}

TEST(QuantHints, GptOss) {
  const QuantHints hints = clean(
      R"({"quantization_config":{"quant_method":"mxfp4","modules_to_not_convert":["model.layers.*.self_attn","lm_head"]}})");
  EXPECT_EQ(hints.method, "mxfp4");
  EXPECT_THAT(hints.excluded, ElementsAre("model.layers.*.self_attn", "lm_head"));
}

TEST(QuantHints, Fp8Blocks) {
  const QuantHints hints = clean(R"({"expert_dtype":"fp4","quantization_config":{"quant_method":"fp8","fmt":"e4m3",
    "activation_scheme":"dynamic","weight_block_size":[128,128],"scale_fmt":"ue8m0","ignored_layers":["gate"]}})");
  EXPECT_EQ(hints.method, "fp8");
  EXPECT_EQ(hints.block_rows, 128u);
  EXPECT_EQ(hints.block_cols, 128u);
  EXPECT_EQ(hints.expert_dtype, "fp4");
  EXPECT_THAT(hints.excluded, ElementsAre("gate"));
  const QuantHints mx =
      clean(R"({"quantization_config":{"quant_method":"mxfp8","weight_block_size":[1,32],"expert_dtype":"fp4"}})");
  EXPECT_EQ(mx.method, "mxfp8");
  EXPECT_EQ(mx.block_rows, 1u);
  EXPECT_EQ(mx.block_cols, 32u);
  EXPECT_EQ(mx.expert_dtype, "fp4");
}

constexpr const char* kSide = R"({"producer":{"name":"modelopt","version":"0.3"},"quantization":{"quant_algo":"NVFP4",
  "kv_cache_quant_algo":"FP8","group_size":16,"exclude_modules":["lm_head","model.layers.61*"]}})";

TEST(QuantHints, ModelOptOnlyInTheSideFile) {
  const QuantHints hints = clean(R"({"model_type":"deepseek_v3"})", kSide);
  EXPECT_EQ(hints.source, "hf_quant_config.json");
  EXPECT_EQ(hints.method, "modelopt");
  EXPECT_EQ(hints.algorithm, "NVFP4");
  EXPECT_EQ(hints.group_size, 16);
  EXPECT_THAT(hints.excluded, ElementsAre("lm_head", "model.layers.61*"));
}

TEST(QuantHints, ModelOptInBothIsCompleted) {
  const QuantHints hints =
      clean(R"({"quantization_config":{"quant_method":"modelopt","quant_algo":"nvfp4","ignore":["x"],
    "config_groups":{"group_0":{"weights":{"dynamic":false,"num_bits":4,"type":"float","group_size":16},"targets":["Linear"]}}}})",
            kSide);
  EXPECT_EQ(hints.source, "hf_quant_config.json");
  EXPECT_EQ(hints.algorithm, "NVFP4");
  EXPECT_EQ(hints.bits, 4u);
  EXPECT_THAT(hints.excluded, ElementsAre("lm_head", "model.layers.61*"));
  EXPECT_EQ(hints.other_source, "");
}

TEST(QuantHints, ModelOptWithoutAMethodAndWithALowerCaseAlgorithm) {
  const QuantHints hints = clean(R"({"quantization_config":{"quant_algo":"fp8_pb_wo"}})");
  EXPECT_EQ(hints.method, "modelopt");
  EXPECT_EQ(hints.algorithm, "FP8_PB_WO");
}

// FORMATS.md §7.1: the method stays fp8, only routed experts changed.
TEST(QuantHints, HybridOfFp8AndModelOptIsNoContradiction) {
  const QuantHints hints = clean(R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128],
    "moe_quant_algo":"NVFP4","quant_algo":"MIXED_PRECISION"}})",
                                 R"({"quantization":{"quant_algo":"MIXED_PRECISION","quantized_layers":{}}})");
  EXPECT_EQ(hints.method, "fp8");
  EXPECT_EQ(hints.source, "config.json");
  EXPECT_EQ(hints.other_source, "");
}

TEST(QuantHints, C57_contradiction_keeps_both) {
  const QuantHints hints = clean(kKimi, kSide);
  EXPECT_EQ(hints.source, "config.json");
  EXPECT_EQ(hints.method, "compressed-tensors");
  EXPECT_EQ(hints.algorithm, "pack-quantized");
  EXPECT_EQ(hints.group_size, 32);
  EXPECT_EQ(hints.other_source, "hf_quant_config.json");
  EXPECT_EQ(hints.other_method, "modelopt");
  EXPECT_EQ(hints.other_algorithm, "NVFP4");
}

TEST(QuantHints, C57_two_algorithms_of_one_method) {
  const QuantHints hints = clean(R"({"quantization_config":{"quant_method":"modelopt","quant_algo":"FP8"}})", kSide);
  EXPECT_EQ(hints.algorithm, "NVFP4");
  EXPECT_EQ(hints.other_source, "config.json");
  EXPECT_EQ(hints.other_algorithm, "FP8");
}

TEST(QuantHints, Gptq) {
  const QuantHints hints =
      clean(R"({"quantization_config":{"bits":4,"group_size":128,"desc_act":true,"sym":true,"quant_method":"gptq"}})");
  EXPECT_EQ(hints.method, "gptq");
  EXPECT_EQ(hints.checkpoint_format, "gptq");
  EXPECT_EQ(hints.bits, 4u);
  EXPECT_EQ(hints.group_size, 128);
  EXPECT_EQ(hints.desc_act, true);
  EXPECT_EQ(hints.symmetric, true);
  const QuantHints side =
      clean("{}", R"({"bits":4,"group_size":-1,"desc_act":false,"sym":false,"checkpoint_format":"gptq_v2"})",
            "quantize_config.json");
  EXPECT_EQ(side.source, "quantize_config.json");
  EXPECT_EQ(side.method, "gptq");
  EXPECT_EQ(side.checkpoint_format, "gptq_v2");
  EXPECT_EQ(side.group_size, -1);
  EXPECT_EQ(side.symmetric, false);
  const QuantHints both = clean(R"({"quantization_config":{"bits":4,"group_size":128,"quant_method":"gptq"}})",
                                R"({"bits":4,"group_size":64,"desc_act":false,"sym":true})", "quantize_config.json");
  EXPECT_EQ(both.group_size, 128);
  EXPECT_EQ(both.other_source, "quantize_config.json");
}

TEST(QuantHints, Awq) {
  const QuantHints hints =
      clean(R"({"quantization_config":{"quant_method":"awq","bits":4,"group_size":128,"zero_point":true,
    "version":"GEMM","modules_to_not_convert":["visual"]}})");
  EXPECT_EQ(hints.method, "awq");
  EXPECT_EQ(hints.checkpoint_format, "gemm");
  EXPECT_EQ(hints.symmetric, false);
  EXPECT_THAT(hints.excluded, ElementsAre("visual"));
  const QuantHints old =
      clean("{}", R"({"zero_point":true,"q_group_size":128,"w_bit":4,"version":"GEMM"})", "quant_config.json");
  EXPECT_EQ(old.method, "awq");
  EXPECT_EQ(old.bits, 4u);
  EXPECT_EQ(old.group_size, 128);
}

TEST(QuantHints, MalformedValuesAreFindingsAndCountAsAbsent) {
  const std::pair<const char*, const char*> bad[] = {{"group_size", "-2"},
                                                     {"group_size", "0"},
                                                     {"group_size", "\"32\""},
                                                     {"group_size", "1.5"},
                                                     {"group_size", "1e+30"},
                                                     {"bits", "0"},
                                                     {"bits", "-4"},
                                                     {"bits", "65"},
                                                     {"bits", "\"4\""},
                                                     {"weight_block_size", "[0,128]"},
                                                     {"weight_block_size", "[128]"},
                                                     {"weight_block_size", "128"},
                                                     {"weight_block_size", "[128,-1]"},
                                                     {"weight_block_size", "\"128\""},
                                                     {"quant_method", "4"},
                                                     {"quant_algo", "[]"},
                                                     {"sym", "\"yes\""},
                                                     {"desc_act", "1"},
                                                     {"ignore", "\"lm_head\""},
                                                     {"ignore", "[1]"},
                                                     {"config_groups", "[]"},
                                                     {"modules_to_not_convert", "{}"},
                                                     {"format", "3"}};
  for (const auto& [key, value] : bad) {
    const Read result = read(std::string(R"({"quantization_config":{")") + key + "\":" + value + "}}");
    ASSERT_EQ(result.findings.size(), 1u) << key << value;
    EXPECT_EQ(result.findings[0].rule, "bad-config");
    EXPECT_EQ(result.findings[0].severity, Severity::kError);
    EXPECT_EQ(result.findings[0].file, "config.json");
    EXPECT_EQ(result.findings[0].values.at(0), (std::pair<std::string, std::string>(key, value)));
    EXPECT_FALSE(result.hints.group_size);
    EXPECT_EQ(result.hints.bits, 0u);
    EXPECT_EQ(result.hints.block_rows, 0u);
  }
  for (const char* carrier : {"[]", "3", "\"awq\"", "true"}) {
    const Read result = read(std::string(R"({"quantization_config":)") + carrier + "}");
    ASSERT_EQ(result.findings.size(), 1u) << carrier;
    EXPECT_EQ(result.hints.source, "");
  }
}

TEST(QuantHints, MalformedGroups) {
  for (const char* group :
       {"3", R"({"weights":[]})", R"({"weights":{"num_bits":"4"}})", R"({"weights":{"actorder":3}})"}) {
    const Read result = read(std::string(R"({"quantization_config":{"config_groups":{"g":)") + group + "}}}");
    ASSERT_EQ(result.findings.size(), 1u) << group;
    EXPECT_EQ(result.findings[0].rule, "bad-config");
    EXPECT_EQ(result.hints.bits, 0u);
  }
}

TEST(QuantHints, FromACheckpoint) {
  const testing::TempDir dir;
  write_safetensors(dir / "model.safetensors", {{"w", Dtype::kU8, {1}}}, {{std::byte{1}}}, {});
  write_atomically(dir / "config.json", std::string_view(kKimi));
  write_atomically(dir / "hf_quant_config.json", std::string_view(kSide));
  Findings findings;
  const QuantHints hints = read_quant_hints(Checkpoint::open(dir.path()), &findings);
  EXPECT_THAT(findings, IsEmpty());
  EXPECT_EQ(hints.source, (dir / "config.json").string());
  EXPECT_EQ(hints.other_source, (dir / "hf_quant_config.json").string());
}

}  // namespace
}  // namespace nibble
