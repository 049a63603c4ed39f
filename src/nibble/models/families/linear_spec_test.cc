// Families with linear attention: what their parameter counts do not show, and configurations that must be refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/models/model_data_test.h"

namespace nibble {
namespace {

using testing::family_of;
using ::testing::HasSubstr;
using testing::model_config;
using testing::model_spec;

std::string letters(const ModelSpec& spec) {
  std::string text;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.attention == AttentionKind::kLinear) text += 'L';
    if (layer.attention == AttentionKind::kGqa) text += 'G';
    if (layer.attention == AttentionKind::kMla) text += 'A';
    if (layer.attention == AttentionKind::kNone) text += layer.mlp == MlpKind::kMoe ? 'E' : '-';
  }
  return text;
}

std::map<std::string, ParamSpec> params_of(const ModelSpec& spec) {
  std::map<std::string, ParamSpec> params;
  family_of(spec).inventory(spec, [&](ParamSpec&& param) { params[param.name] = param; });
  return params;
}

using Shape = std::vector<uint64_t>;

TEST(LinearSpec, qwen3_next_from_an_interval) {
  const ModelSpec spec = model_spec("qwen3-next-80b-a3b");
  EXPECT_EQ(letters(spec).substr(0, 8), "LLLGLLLG");
  EXPECT_EQ(spec.linear, (LinearAttentionSpec{32, 16, 128, 128, 4}));
  EXPECT_TRUE(spec.output_gate && spec.norm_topk_prob);
  EXPECT_EQ(spec.rope.partial_rotary_factor, 0.25);
  EXPECT_EQ(spec.mtp_layers, 0U);
  Json config = model_config("qwen3-next-80b-a3b");
  config.erase("partial_rotary_factor");
  config["mlp_only_layers"] = parse_json("[1]", "");
  const ModelSpec other = find_family(config)->parse(config, "");
  EXPECT_EQ(other.rope.partial_rotary_factor, 0.25);
  EXPECT_EQ(other.layers[1].mlp, MlpKind::kDense);
  EXPECT_EQ(params_of(other).at("model.layers.1.mlp.up_proj.weight").shape, (Shape{5120, 2048}));
}

TEST(LinearSpec, qwen3_5_with_and_without_a_wrapper) {
  const ModelSpec spec = model_spec("qwen3.5-35b-a3b");
  EXPECT_EQ(spec.prefix, "model.language_model.");
  EXPECT_EQ(letters(spec).substr(0, 8), "LLLGLLLG");
  EXPECT_EQ(spec.layer_prefix(40), "mtp.layers.0.");
  auto params = params_of(spec);
  EXPECT_TRUE(params.contains("lm_head.weight"));
  EXPECT_EQ(params.at("mtp.fc.weight").shape, (Shape{2048, 4096}));
  EXPECT_EQ(params.at("mtp.fc.weight").role, Role::kMtp);
  EXPECT_EQ(params.at("model.language_model.layers.3.self_attn.q_proj.weight").shape, (Shape{8192, 2048}));
  EXPECT_EQ(params.at("model.language_model.layers.0.mlp.experts.gate_up_proj").fusion, Fusion::kGateThenUp);
  const ModelSpec text = model_spec("qwen3.8-2.4t-a95b");
  EXPECT_EQ(text.prefix, "model.");
  EXPECT_TRUE(params_of(text).contains("mtp.layers.0.mlp.experts.down_proj"));
  // Checkpoint index of the release: 4,892,365,451,008 bytes of BF16.
  uint64_t elements = 0;
  for (const auto& [name, param] : params_of(text)) elements += testing::elements(param);
  EXPECT_EQ(2 * elements, 4'892'365'451'008U);
}

TEST(LinearSpec, qwen4_exp) {
  const ModelSpec spec = model_spec("qwen3.8-flash-next");
  EXPECT_EQ(letters(spec).substr(0, 8), "LLLGLLLG");
  EXPECT_EQ(spec.indexer, (IndexerSpec{4, 128, 2048, 1}));
  EXPECT_TRUE(spec.layers[3].indexer && !spec.layers[2].indexer);
  EXPECT_EQ(spec.hyper_streams, 4U);
  EXPECT_EQ(spec.hyper_rank, 320U);
  EXPECT_EQ(spec.ngram, (NgramSpec{3, 16, 2560, 4, 128}));
  EXPECT_EQ(spec.layers[1].ngram_rows, 320'001'536U);  // the file counts from 1: layer 2
  const auto params = params_of(spec);
  const std::string table = "model.language_model.layers.1.ple.ple_embedding.ngram_embedding.shard_127.weight";
  EXPECT_EQ(params.at(table).shape, (Shape{2'500'012, 160}));
  EXPECT_FALSE(params.at(table).counted);
  EXPECT_FALSE(params.contains("model.language_model.norm.weight"));  // hyper-connections have norms instead
  Json config = model_config("qwen3.8-flash-next");
  config["text_config"]["ple_layer_ids"] = parse_json("[2, 5]", "");
  // The second table's lookups take the next 16 primes.
  EXPECT_GT(find_family(config)->parse(config, "").layers[4].ngram_rows, 320'001'536U);
}

TEST(LinearSpec, glm5_next) {
  const ModelSpec spec = model_spec("glm-5.3-flash");
  EXPECT_EQ(letters(spec).substr(0, 8), "LLLALLLA");
  EXPECT_EQ(letters(spec).back(), 'L');
  EXPECT_EQ(spec.indexer, (IndexerSpec{32, 128, 2048, 4}));
  EXPECT_TRUE(spec.layers[3].indexer && !spec.layers[4].indexer);
  EXPECT_EQ(spec.qk_rope_head_dim, 0U);
  EXPECT_EQ(spec.layers[2].mlp, MlpKind::kDense);
  EXPECT_EQ(spec.activation, Activation::kClampedSwiglu);
  const auto params = params_of(spec);
  EXPECT_TRUE(params.contains("model.language_model.layers.44.hc_attn_fn"));
  EXPECT_FALSE(params.contains("model.language_model.layers.45.hc_attn_fn"));
  EXPECT_TRUE(params.contains("model.language_model.layers.45.self_attn.indexer.wk.weight"));
  Json config = model_config("glm-5.3-flash");
  config["text_config"]["indexer_types"][7] = "shared";
  const ModelSpec shared = find_family(config)->parse(config, "");
  EXPECT_FALSE(shared.layers[7].indexer);
  EXPECT_FALSE(params_of(shared).contains("model.language_model.layers.7.self_attn.indexer.wk.weight"));
}

TEST(LinearSpec, bailing) {
  const ModelSpec flash = model_spec("ling-3.0-flash");
  EXPECT_EQ(letters(flash).substr(0, 12), "LLLLLALLLLLA");
  EXPECT_EQ(flash.q_lora_rank, 0U);
  EXPECT_EQ(flash.topk_group, 4U);
  EXPECT_TRUE(flash.rope.interleaved);
  EXPECT_EQ(params_of(flash).at("model.layers.5.attention.g_proj.weight").shape, (Shape{32, 2560}));
  const ModelSpec large = model_spec("ling-1t");
  EXPECT_EQ(large.qk_norm, QkNorm::kPerHead);
  EXPECT_EQ(large.n_group, 8U);
  EXPECT_EQ(large.rope.partial_rotary_factor, 0.5);
  EXPECT_EQ(large.layers[3].mlp, MlpKind::kDense);
}

TEST(LinearSpec, nemotron_h) {
  const ModelSpec nano = model_spec("nemotron-3-nano-30b-a3b");
  EXPECT_EQ(letters(nano), "LELELGELELELGELELELGELELELGELELELGELELELELGELELELELE");
  EXPECT_EQ(letters(nano), letters(model_spec("nemotron-3.5-lightning-30b-a3b-nvfp4")));
  EXPECT_EQ(nano.linear, (LinearAttentionSpec{64, 8, 128, 64, 4}));
  EXPECT_EQ(nano.expert_naming.gate, "");
  EXPECT_EQ(nano.latent, 0U);
  EXPECT_EQ(nano.rope.partial_rotary_factor, 0.0);
  const ModelSpec ultra = model_spec("nemotron-3-ultra-550b-a55b");
  EXPECT_EQ(ultra.layers.size(), 108U);
  EXPECT_EQ(ultra.latent, 2048U);
  EXPECT_EQ(ultra.mtp_layers, 2U);
  const auto params = params_of(ultra);
  EXPECT_EQ(params.at("backbone.layers.1.mixer.experts.511.up_proj.weight").shape, (Shape{5120, 2048}));
  EXPECT_EQ(params.at("backbone.layers.1.mixer.fc1_latent_proj.weight").role, Role::kLatent);
  EXPECT_FALSE(params.contains("backbone.layers.1.mixer.experts.0.gate_proj.weight"));
  EXPECT_EQ(params.at("mtp.layers.1.mixer.experts.0.down_proj.weight").role, Role::kMtp);
  Json config = model_config("nemotron-3-nano-30b-a3b");
  config["hybrid_override_pattern"] = "M-*E";
  config["num_hidden_layers"] = 4;
  const ModelSpec small = find_family(config)->parse(config, "");
  EXPECT_EQ(letters(small), "L-GE");
  EXPECT_EQ(params_of(small).at("backbone.layers.1.mixer.up_proj.weight").shape, (Shape{1856, 2688}));
}

// A configuration with one key changed ("" removes it; "text_config." before it: there), and what the Error must say.
struct Refusal {
  const char *model, *key, *value;
  std::vector<const char*> says;
};

class LinearRefused : public ::testing::TestWithParam<Refusal> {};

TEST_P(LinearRefused, names_file_and_numbers) {
  const Refusal& refusal = GetParam();
  Json config = model_config(refusal.model);
  const std::string text = "text_config.";
  std::string key = refusal.key;
  const bool inside = key.rfind(text, 0) == 0;
  if (inside) key = key.substr(text.size());
  Json& object = inside ? config["text_config"] : config;
  if (*refusal.value == '\0') {
    object.erase(key);
  } else {
    object[key] = parse_json(refusal.value, "");
  }
  try {
    find_family(config)->parse(config, "/m/config.json");
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.file(), "/m/config.json");
    EXPECT_FALSE(error.ways_out().empty());
    for (const char* said : refusal.says) EXPECT_THAT(error.what(), HasSubstr(said));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Configs, LinearRefused,
    ::testing::Values(
        Refusal{"qwen3-next-80b-a3b", "head_dim", "", {"lacks", "head_dim"}},
        Refusal{"qwen3-next-80b-a3b", "shared_expert_intermediate_size", "", {"lacks"}},
        Refusal{"qwen3-next-80b-a3b", "linear_num_value_heads", "33", {"33", "16"}},
        Refusal{"qwen3-next-80b-a3b", "full_attention_interval", "0", {"full_attention_interval", "0"}},
        Refusal{"qwen3.5-35b-a3b", "text_config.layer_types", "[\"full_attention\"]", {"layer_types", "1", "40"}},
        Refusal{"qwen3.5-35b-a3b", "text_config.mtp_use_dedicated_embeddings", "true", {"embeddings"}},
        Refusal{"qwen3.5-35b-a3b", "text_config.mtp_num_hidden_layers", "9999", {"9999", "256"}},
        Refusal{"qwen3.8-flash-next", "text_config.indexer_kv_heads", "2", {"indexer_kv_heads", "2"}},
        Refusal{"qwen3.8-flash-next", "text_config.indexer_compress_ratio", "3", {"2048", "3"}},
        Refusal{"qwen3.8-flash-next", "text_config.indexer_n_heads", "", {"lacks", "indexer_n_heads"}},
        Refusal{"qwen3.8-flash-next", "text_config.ple_layer_ids", "[49]", {"ple_layer_ids", "49", "48"}},
        Refusal{"qwen3.8-flash-next", "text_config.ple_layer_ids", "[2, 2]", {"ple_layer_ids", "2"}},
        Refusal{"qwen3.8-flash-next", "text_config.ple_embed_dim", "2561", {"2561"}},
        Refusal{"qwen3.8-flash-next", "text_config.ngram_size", "1", {"ngram_size", "1"}},
        Refusal{"qwen3.8-flash-next", "text_config.split_ngram_parts", "100", {"320001536", "100"}},
        Refusal{"qwen3.8-flash-next", "text_config.split_ngram_parts", "65537", {"65537", "65536"}},
        Refusal{"glm-5.3-flash", "text_config", "", {"lacks", "text_config"}},
        Refusal{"glm-5.3-flash", "text_config.linear_attn_config", "", {"lacks"}},
        Refusal{"qwen3-next-80b-a3b", "layer_types", "7", {"layer_types"}},
        Refusal{"ling-1t", "architectures", "[\"BailingMoeForCausalLM\"]", {"first generation"}},
        Refusal{"ling-3.0-flash", "short_conv_kernel_size", "", {"lacks", "short_conv_kernel_size"}},
        Refusal{"ling-3.0-flash", "no_kda_lora", "false", {"no_kda_lora"}},
        Refusal{"ling-3.0-flash", "gated_attention_proj_granularity_type", "\"element_wise\"", {"element_wise"}},
        Refusal{"nemotron-3-nano-30b-a3b", "num_hidden_layers", "51", {"52", "51"}},
        Refusal{"nemotron-3-nano-30b-a3b", "hybrid_override_pattern", "\"\"", {"hybrid_override_pattern", "0"}},
        Refusal{"nemotron-3-nano-30b-a3b", "hybrid_override_pattern", "\"MX\"", {"X"}},
        Refusal{"nemotron-3-nano-30b-a3b", "use_bias", "true", {"use_bias"}},
        Refusal{"nemotron-3-nano-30b-a3b", "use_conv_bias", "false", {"use_conv_bias"}},
        Refusal{"nemotron-3-ultra-550b-a55b", "mtp_layers_block_type", "[\"mamba\"]", {"mtp_layers_block_type", "1"}}));

TEST(LinearRefused, unknown_and_contradictory_layers) {
  const auto refuses = [](const char* model, const char* key, size_t layer, const Json& value, const char* says) {
    Json config = model_config(model);
    config["text_config"][key][layer] = value;
    try {
      find_family(config)->parse(config, "/m/config.json");
      FAIL() << "was accepted";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(says));
    }
  };
  refuses("qwen3.5-35b-a3b", "layer_types", 5, "deepseek_sparse_attention", "deepseek_sparse_attention");
  refuses("glm-5.3-flash", "layer_types", 4, "indexed_attention", "kda_layers");
  refuses("glm-5.3-flash", "indexer_types", 9, "skipped", "skipped");
}

}  // namespace
}  // namespace nibble
