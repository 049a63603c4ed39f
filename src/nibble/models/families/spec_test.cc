// Configurations of released models against what their architecture tables say, in both of transformers' spellings, and
// configurations that must be refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/models/model_data_test.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;
using testing::model_config;
using testing::model_spec;

size_t layers_that(const ModelSpec& spec, const std::function<bool(const LayerSpec&)>& predicate) {
  return static_cast<size_t>(std::count_if(spec.layers.begin(), spec.layers.end(), predicate));
}

size_t moe_layers(const ModelSpec& spec) {
  return layers_that(spec, [](const LayerSpec& layer) { return layer.mlp == MlpKind::kMoe; });
}

TEST(Spec, gpt_oss_20b) {
  const ModelSpec spec = model_spec("gpt-oss-20b");
  EXPECT_EQ(spec.layers.size(), 24U);
  EXPECT_EQ(spec.layers[0].sliding_window, 128U);
  EXPECT_EQ(spec.layers[1].sliding_window, 0U);
  EXPECT_EQ(layers_that(spec, [](const LayerSpec& layer) { return layer.sliding_window != 0; }), 12U);
  EXPECT_TRUE(spec.attention_bias && spec.sinks);
  EXPECT_EQ(spec.router, RouterKind::kTopKSoftmax);
  EXPECT_EQ(spec.activation, Activation::kClampedSwiglu);
  EXPECT_EQ(spec.swiglu_limit, 7.0);
  EXPECT_EQ(spec.swiglu_alpha, 1.702);
  EXPECT_EQ(spec.experts_per_token, 4U);
  EXPECT_EQ(spec.expert_naming.native, Fusion::kInterleaved);
  EXPECT_TRUE(spec.expert_naming.biases);
  EXPECT_EQ(spec.rope.theta, 150000.0);
  EXPECT_EQ(spec.rope.scaling, "yarn");
  EXPECT_EQ(spec.rope.factor, 32.0);
  EXPECT_EQ(spec.rope.original_max_position, 4096U);
  EXPECT_FALSE(spec.rope.truncate);
  EXPECT_FALSE(spec.rope.interleaved);
  EXPECT_EQ(spec.max_positions, 131072U);
}

TEST(Spec, deepseek_v3) {
  const ModelSpec spec = model_spec("deepseek-v3");
  EXPECT_EQ(spec.family, "deepseek_v3");
  EXPECT_EQ(spec.layers.size(), 61U);
  EXPECT_EQ(moe_layers(spec), 58U);
  EXPECT_EQ(spec.layers[2].mlp, MlpKind::kDense);
  EXPECT_EQ(spec.dense_intermediate, 18432U);
  EXPECT_EQ(spec.layers[0].attention, AttentionKind::kMla);
  EXPECT_EQ(spec.head_dim, 192U);
  EXPECT_EQ(spec.router, RouterKind::kSigmoidBias);
  EXPECT_EQ(spec.n_group, 8U);
  EXPECT_EQ(spec.topk_group, 4U);
  EXPECT_EQ(spec.routed_scaling_factor, 2.5);
  EXPECT_TRUE(spec.norm_topk_prob);
  EXPECT_EQ(spec.shared_intermediate, 2048U);
  EXPECT_EQ(spec.mtp_layers, 1U);
  EXPECT_TRUE(spec.rope.interleaved);
  EXPECT_EQ(spec.rope.factor, 40.0);
  EXPECT_EQ(spec.rope.mscale_all_dim, 1.0);
  EXPECT_EQ(spec.indexer.heads, 0U);
  EXPECT_EQ(spec.layer_prefix(61), "model.layers.61.");
}

TEST(Spec, deepseek_v32_has_an_indexer) {
  const ModelSpec spec = model_spec("deepseek-v3.2");
  EXPECT_EQ(spec.indexer, (IndexerSpec{64, 128, 2048}));
  EXPECT_TRUE(spec.layers[60].indexer);
}

TEST(Spec, kimi_k25_reads_text_config) {
  const ModelSpec spec = model_spec("kimi-k2.5");
  EXPECT_EQ(spec.model_type, "kimi_k25");
  EXPECT_EQ(spec.prefix, "language_model.model.");
  EXPECT_EQ(spec.experts, 384U);
  EXPECT_EQ(moe_layers(spec), 60U);
  EXPECT_EQ(spec.rope.factor, 64.0);
  EXPECT_EQ(spec.routed_scaling_factor, 2.827);
}

TEST(Spec, kimi_k3_layers) {
  const ModelSpec spec = model_spec("kimi-k3");
  EXPECT_EQ(layers_that(spec, [](const LayerSpec& l) { return l.attention == AttentionKind::kLinear; }), 69U);
  EXPECT_EQ(layers_that(spec, [](const LayerSpec& l) { return l.attention == AttentionKind::kMla; }), 24U);
  EXPECT_EQ(spec.layers[3].attention, AttentionKind::kMla);  // the file counts from 1: layer 4
  EXPECT_EQ(spec.latent, 3584U);
  EXPECT_EQ(spec.expert_width(), 3584U);
  EXPECT_EQ(spec.shared_intermediate, 6144U);
  EXPECT_EQ(spec.residual_blocks, 12U);
  EXPECT_TRUE(spec.output_gate);
}

TEST(Spec, deepseek_v4) {
  const ModelSpec spec = model_spec("deepseek-v4-flash");
  EXPECT_EQ(spec.layers.size(), 43U);
  EXPECT_EQ(layers_that(spec, [](const LayerSpec& l) { return l.compress_ratio == 4 && l.indexer; }), 21U);
  EXPECT_EQ(layers_that(spec, [](const LayerSpec& l) { return l.compress_ratio == 128 && !l.indexer; }), 20U);
  EXPECT_EQ(layers_that(spec, [](const LayerSpec& l) { return l.hash_routed; }), 3U);
  EXPECT_EQ(spec.router, RouterKind::kSqrtSoftplusBias);
  EXPECT_EQ(spec.rope.compress_theta, 160000.0);
  EXPECT_EQ(spec.layer_prefix(42), "layers.42.");
  EXPECT_EQ(spec.layer_prefix(43), "mtp.0.");
  EXPECT_EQ(spec.hyper_streams, 4U);
}

TEST(Spec, qwen3_moe) {
  const ModelSpec spec = model_spec("qwen3-30b-a3b");
  EXPECT_EQ(spec.qk_norm, QkNorm::kPerHead);
  EXPECT_EQ(spec.router, RouterKind::kSoftmaxTopK);
  EXPECT_TRUE(spec.norm_topk_prob);
  EXPECT_EQ(spec.head_dim, 128U);  // not hidden / heads = 64
  EXPECT_EQ(moe_layers(spec), 48U);
  EXPECT_EQ(spec.layers[0].sliding_window, 0U);
  Json config = model_config("qwen3-30b-a3b");
  config["decoder_sparse_step"] = 2;
  config["mlp_only_layers"] = parse_json("[1, 3]", "");
  const ModelSpec sparse = find_family(config)->parse(parse_json(config.dump(), ""), "");
  EXPECT_EQ(moe_layers(sparse), 22U);  // 1, 3, 5, …, 47 without 1 and 3
  EXPECT_EQ(sparse.layers[5].mlp, MlpKind::kMoe);
}

TEST(Spec, glm_minimax_mixtral) {
  const ModelSpec glm = model_spec("glm-4.6");
  EXPECT_EQ(glm.qk_norm, QkNorm::kPerHead);
  EXPECT_TRUE(glm.attention_bias);
  EXPECT_EQ(glm.rope.partial_rotary_factor, 0.5);
  EXPECT_EQ(moe_layers(glm), 89U);
  EXPECT_EQ(model_spec("glm-4.5-air").qk_norm, QkNorm::kNone);
  const ModelSpec minimax = model_spec("minimax-m2.7");
  EXPECT_EQ(minimax.qk_norm, QkNorm::kFullWidth);
  EXPECT_EQ(minimax.rope.partial_rotary_factor, 0.5);
  EXPECT_EQ(minimax.expert_naming.gate, "w1");
  EXPECT_EQ(minimax.expert_naming.down, "w2");
  const ModelSpec mixtral = model_spec("mixtral-8x22b");
  EXPECT_EQ(mixtral.router, RouterKind::kTopKSoftmax);
  EXPECT_EQ(mixtral.head_dim, 128U);  // 6144 / 48
  EXPECT_EQ(mixtral.rope.theta, 1e6);
}

TEST(Spec, rope_of_llama_3) {
  const Json config = parse_json(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1,
    "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 64, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
    "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192}})",
                                 "");
  const ModelSpec spec = find_family(config)->parse(config, "");
  EXPECT_EQ(spec.rope.scaling, "llama3");
  EXPECT_EQ(spec.rope.factor, 32.0);
  EXPECT_EQ(spec.rope.high_freq_factor, 4.0);
  EXPECT_EQ(spec.rope.original_max_position, 8192U);
  EXPECT_EQ(spec.kv_heads, 4U);  // as many as query heads, if nothing says otherwise
  EXPECT_EQ(spec.head_dim, 16U);
}

class BothSpellings : public ::testing::TestWithParam<const char*> {};

TEST_P(BothSpellings, mean_the_same) {
  ModelSpec newer = model_spec(std::string(GetParam()) + ".transformers5");
  const ModelSpec older = model_spec(GetParam());
  // transformers adds attention_factor 1 for DeepSeek-V4, which is its reading of the vendor's code.
  newer.rope.attention_factor = older.rope.attention_factor;
  EXPECT_EQ(newer, older);
}

INSTANTIATE_TEST_SUITE_P(Models, BothSpellings,
                         ::testing::Values("qwen3-30b-a3b", "gpt-oss-20b", "deepseek-v3.2", "glm-4.5", "minimax-m2.7",
                                           "mixtral-8x7b", "kimi-k2.5", "deepseek-v4-flash"));

// A configuration with one key changed ("" removes it), and the message that it must give.
struct Refusal {
  const char *model, *key, *value;
  std::vector<const char*> says;
};

class Refused : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refused, names_file_key_and_numbers) {
  const Refusal& refusal = GetParam();
  Json config = model_config(refusal.model);
  if (*refusal.value == '\0') {
    config.erase(refusal.key);
  } else {
    config[refusal.key] = parse_json(refusal.value, "");
  }
  try {
    find_family(config)->parse(config, "/m/config.json");
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.file(), "/m/config.json");
    EXPECT_FALSE(error.ways_out().empty());
    EXPECT_THAT(error.what(), HasSubstr(refusal.key));
    for (const char* text : refusal.says) EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Configs, Refused,
    ::testing::Values(
        Refusal{"qwen3-30b-a3b", "hidden_size", "", {"lacks"}}, Refusal{"qwen3-30b-a3b", "hidden_size", "0", {"0"}},
        Refusal{"qwen3-30b-a3b", "hidden_size", "\"big\"", {"big"}},
        Refusal{"qwen3-30b-a3b", "hidden_size", "-2048", {"-2048"}},
        Refusal{"qwen3-30b-a3b", "hidden_size", "4294967296", {"4294967296", "2147483648"}},
        Refusal{"qwen3-30b-a3b", "num_hidden_layers", "10001", {"10001", "10000"}},
        Refusal{"qwen3-30b-a3b", "num_experts", "100001", {"100001", "100000"}},
        Refusal{"qwen3-30b-a3b", "num_experts", "99999", {"99999", "48", "2000000"}},
        Refusal{"qwen3-30b-a3b", "num_experts", "4", {"8", "4"}},
        Refusal{"qwen3-30b-a3b", "num_local_experts", "64", {"num_experts", "128", "64"}},
        Refusal{"qwen3-30b-a3b", "num_key_value_heads", "5", {"32", "5"}},
        Refusal{"qwen3-30b-a3b", "rope_theta", "", {"lacks"}}, Refusal{"qwen3-30b-a3b", "rms_norm_eps", "0", {"0"}},
        Refusal{"qwen3-30b-a3b", "torch_dtype", "\"int8\"", {"int8"}},
        Refusal{"gpt-oss-20b", "layer_types", "[\"full_attention\"]", {"1", "24"}},
        Refusal{"gpt-oss-20b", "rope_scaling", "{\"rope_type\": \"yarn\"}", {"factor"}},
        Refusal{"deepseek-v3", "kv_lora_rank", "", {"lacks"}}, Refusal{"deepseek-v3", "moe_layer_freq", "0", {"0"}},
        Refusal{"kimi-k2.5", "text_config", "", {"lacks"}}, Refusal{"kimi-k2.5", "text_config", "7", {"object"}},
        Refusal{"deepseek-v4-flash", "compress_ratios", "[0, 4]", {"2", "43"}}));

TEST(FindFamily, by_type_then_by_architecture) {
  const auto name = [](const char* text) {
    const Family* family = find_family(parse_json(text, ""));
    return family == nullptr ? "" : std::string(family->name());
  };
  EXPECT_EQ(name(R"({"model_type": "kimi_k2"})"), "deepseek_v3");
  EXPECT_EQ(name(R"({"architectures": ["MixtralForCausalLM"]})"), "mixtral");
  EXPECT_EQ(name(R"({"text_config": {"model_type": "llama"}})"), "llama");
  // A wrapper that is unknown prefixes names: its text model alone says nothing.
  EXPECT_EQ(name(R"({"model_type": "new_vl", "text_config": {"model_type": "llama"}})"), "");
  EXPECT_EQ(name(R"({"model_type": 7})"), "");
  EXPECT_EQ(name("[]"), "");
  EXPECT_EQ(name("null"), "");
  EXPECT_EQ(family_label(parse_json(R"({"model_type": "mystery"})", "")), "mystery");
  EXPECT_EQ(family_label(parse_json(R"({"architectures": ["MysteryForCausalLM"]})", "")), "MysteryForCausalLM");
  EXPECT_EQ(family_label(parse_json("{}", "")), "unknown");
}

}  // namespace
}  // namespace nibble
