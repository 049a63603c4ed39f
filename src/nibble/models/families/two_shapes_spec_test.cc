// Families whose layers have grouped-query attention of two shapes, or over two ranges: what their parameter counts do
// not show, and configurations that they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/models/expert_forms.h"
#include "nibble/models/model_data_test.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using testing::family_of;
using ::testing::HasSubstr;
using testing::model_config;
using testing::model_spec;

using Shapes = std::map<std::string, std::vector<uint64_t>>;

ModelSpec parse(const Json& config) {
  const Json reread = parse_json(config.dump(), "");
  return find_family(reread)->parse(reread, "/m/config.json");
}

// Everything but experts one by one.
Shapes shapes_of(const ModelSpec& spec) {
  Shapes shapes;
  family_of(spec).inventory(spec, [&](ParamSpec&& param) {
    if (param.expert < 0) shapes[param.name] = param.shape;
  });
  return shapes;
}

size_t layers_that(const ModelSpec& spec, const std::function<bool(const LayerSpec&)>& predicate) {
  return static_cast<size_t>(std::count_if(spec.layers.begin(), spec.layers.end(), predicate));
}

size_t sliding_layers(const ModelSpec& spec) {
  return layers_that(spec, [](const LayerSpec& layer) { return layer.sliding_window != 0; });
}

TEST(TwoShapes, minimax_m3_chooses_blocks_of_keys) {
  const ModelSpec spec = model_spec("minimax-m3");
  EXPECT_EQ(spec.indexer, (IndexerSpec{4, 128, 16, 1, 128}));
  EXPECT_EQ(layers_that(spec, [](const LayerSpec& layer) { return layer.indexer; }), 57U);
  EXPECT_FALSE(spec.layers[2].indexer);
  EXPECT_EQ(spec.layers[2].mlp, MlpKind::kDense);
  EXPECT_EQ(spec.activation, Activation::kClampedSwiglu);
  EXPECT_EQ(spec.swiglu_limit, 7.0);
  EXPECT_EQ(spec.rope.partial_rotary_factor, 0.5);
  EXPECT_EQ(spec.unlisted_mtp_layers, 1U);
  const Shapes shapes = shapes_of(spec);
  EXPECT_TRUE(shapes.contains("language_model.lm_head.weight"));
  EXPECT_TRUE(shapes.contains("language_model.model.layers.3.block_sparse_moe.e_score_correction_bias"));
}

TEST(TwoShapes, llama_4_attends_within_blocks) {
  const ModelSpec scout = model_spec("llama-4-scout");
  EXPECT_EQ(layers_that(scout, [](const LayerSpec& layer) { return layer.chunked && layer.rotary; }), 36U);
  EXPECT_EQ(scout.layers[2].sliding_window, 8192U);
  EXPECT_EQ(scout.layers[3].sliding_window, 0U);
  EXPECT_FALSE(scout.layers[3].rotary);
  EXPECT_EQ(scout.rope.factor, 16.0);
  EXPECT_TRUE(scout.rope.interleaved);
  const ModelSpec maverick = model_spec("llama-4-maverick");
  EXPECT_EQ(maverick.layers[0].mlp, MlpKind::kDense);
  EXPECT_EQ(layers_that(maverick, [](const LayerSpec& layer) { return layer.mlp == MlpKind::kMoe; }), 24U);
  Json config = model_config("llama-4-maverick");
  config["text_config"]["moe_layers"] = parse_json("[0, 47]", "");
  EXPECT_EQ(layers_that(parse(config), [](const LayerSpec& layer) { return layer.mlp == MlpKind::kMoe; }), 2U);
}

// Llama-4 and gpt-oss store dense stacks as (E, K, N), but one has gate then up and the other one row by row.
TEST(TwoShapes, llama_4_transposes_its_own_form_alone) {
  const ModelSpec spec = model_spec("llama-4-scout");
  ASSERT_EQ(native_form(spec), ExpertStorage::kGateThenUp);
  std::vector<ParamSpec> params;
  const auto keep = [&](ParamSpec&& param) { params.push_back(std::move(param)); };
  visit_experts(spec, 0, ExpertStorage::kGateThenUp, keep);
  ASSERT_EQ(params.size(), 2U);
  EXPECT_EQ(params[0].name, "language_model.model.layers.0.feed_forward.experts.gate_up_proj");
  EXPECT_EQ(params[0].fusion, Fusion::kGateThenUp);
  EXPECT_THAT(params[0].shape, ElementsAre(16, 16384, 5120));
  EXPECT_TRUE(params[0].transposed_when_dense && params[1].transposed_when_dense);
  params.clear();
  visit_experts(spec, 0, ExpertStorage::kInterleaved, keep);
  EXPECT_FALSE(params[0].transposed_when_dense || params[1].transposed_when_dense);
}

TEST(TwoShapes, mimo_has_heads_and_sinks_of_its_sliding_layers) {
  const ModelSpec flash = model_spec("mimo-v2-flash");
  EXPECT_EQ(sliding_layers(flash), 39U);
  EXPECT_EQ(flash.attention_shape(flash.layers[0]), (AttentionShape{64, 4, 192, 128}));
  EXPECT_EQ(flash.attention_shape(flash.layers[1]), (AttentionShape{64, 8, 192, 128}));
  EXPECT_EQ(flash.rope.theta, 5e6);
  EXPECT_EQ(flash.sliding_rope.value().theta, 1e4);
  Shapes shapes = shapes_of(flash);
  EXPECT_FALSE(shapes.contains("model.layers.0.self_attn.attention_sink_bias"));
  EXPECT_THAT(shapes["model.layers.1.self_attn.attention_sink_bias"], ElementsAre(64));
  EXPECT_THAT(shapes["model.layers.1.self_attn.v_proj.weight"], ElementsAre(1024, 4096));
  EXPECT_THAT(shapes["model.layers.1.self_attn.o_proj.weight"], ElementsAre(4096, 8192));
  const ModelSpec fused = model_spec("mimo-v2.6-flash");
  EXPECT_EQ(fused.unlisted_mtp_layers, 3U);
  shapes = shapes_of(fused);
  EXPECT_FALSE(shapes.contains("model.layers.0.self_attn.q_proj.weight"));
  EXPECT_THAT(shapes["model.layers.0.self_attn.qkv_proj.weight"], ElementsAre(13568, 4096));
  EXPECT_THAT(shapes["model.layers.1.self_attn.qkv_proj.weight"], ElementsAre(14848, 4096));
  EXPECT_EQ(sliding_layers(model_spec("mimo-v2.5-pro")), 60U);
}

TEST(TwoShapes, mimo_with_sinks_in_full_layers_alone_is_refused) {
  Json config = model_config("mimo-v2-flash");
  config["add_full_attention_sink_bias"] = true;
  EXPECT_TRUE(shapes_of(parse(config)).contains("model.layers.0.self_attn.attention_sink_bias"));
  config["add_swa_attention_sink_bias"] = false;
  try {
    parse(config);
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("add_swa_attention_sink_bias"));
    EXPECT_FALSE(error.ways_out().empty());
  }
}

TEST(TwoShapes, inkling_keeps_convolutions_and_names_its_stacks) {
  const ModelSpec spec = model_spec("inkling");
  EXPECT_EQ(sliding_layers(spec), 55U);
  EXPECT_EQ(spec.attention_shape(spec.layers[0]).kv_heads, 16U);
  EXPECT_EQ(spec.attention_shape(spec.layers[5]).kv_heads, 8U);
  EXPECT_EQ(spec.layers[5].conv_state, 2U * (6144 + 1024) * 3);
  EXPECT_FALSE(spec.layers[5].rotary);
  EXPECT_EQ(spec.layers[1].mlp, MlpKind::kDense);
  Shapes shapes = shapes_of(spec);
  EXPECT_THAT(shapes["model.llm.layers.2.mlp.experts.w13_weight"], ElementsAre(256, 6144, 6144));
  EXPECT_THAT(shapes["model.llm.layers.0.attn.rel_logits_proj.proj"], ElementsAre(16, 512));
  EXPECT_THAT(shapes["model.llm.layers.5.attn.rel_logits_proj.proj"], ElementsAre(16, 1024));
  EXPECT_THAT(shapes["model.llm.unembed.weight"], ElementsAre(200058, 6144));
  EXPECT_THAT(shapes["model.mtp.layers.7.transformer_block.attn.wk_dv.weight"], ElementsAre(1024, 6144));
  family_of(spec).inventory(spec, [](ParamSpec&& param) { EXPECT_FALSE(param.transposed_when_dense) << param.name; });
  Json config = model_config("inkling");
  config["mtp_config"]["local_layer_ids"] = parse_json("[7]", "");
  shapes = shapes_of(parse(config));
  EXPECT_THAT(shapes["model.mtp.layers.6.transformer_block.attn.wk_dv.weight"], ElementsAre(1024, 6144));
  EXPECT_THAT(shapes["model.mtp.layers.7.transformer_block.attn.wk_dv.weight"], ElementsAre(2048, 6144));
}

TEST(TwoShapes, step_has_more_heads_where_it_slides) {
  const ModelSpec spec = model_spec("step-3.7-flash");
  EXPECT_EQ(sliding_layers(spec), 33U);
  EXPECT_EQ(spec.attention_shape(spec.layers[0]).heads, 64U);
  EXPECT_EQ(spec.attention_shape(spec.layers[1]).heads, 96U);
  EXPECT_EQ(spec.layers[2].mlp, MlpKind::kDense);
  EXPECT_EQ(spec.unlisted_mtp_layers, 3U);
  Shapes shapes = shapes_of(spec);
  EXPECT_THAT(shapes["model.layers.1.self_attn.g_proj.weight"], ElementsAre(96, 4096));
  EXPECT_THAT(shapes["model.layers.3.moe.gate_proj.weight"], ElementsAre(288, 1280, 4096));
  EXPECT_THAT(shapes["model.layers.3.moe.down_proj.weight"], ElementsAre(288, 4096, 1280));
}

// The keys of the vendor's own file, under text_config, with lists that go on for the MTP layers.
TEST(TwoShapes, step_in_its_vendors_spelling) {
  const Json flat = model_config("step-3.7-flash");
  Json text = flat;
  for (const char* key : {"num_sliding_attention_heads", "num_key_value_heads", "num_experts", "num_experts_per_tok",
                          "first_k_dense_replace", "scoring_func", "architectures"})
    text.erase(key);
  text["model_type"] = "step3p5";
  text["num_attention_groups"] = 8;
  text["attention_other_setting"] = parse_json(R"({"num_attention_heads": 96, "num_attention_groups": 8,
                                                   "head_dim": 128})",
                                               "");
  text["moe_num_experts"] = 288;
  text["moe_top_k"] = 8;
  std::string listed;
  for (int i = 3; i < 45; ++i) listed += (i == 3 ? "" : ",") + std::to_string(i);
  text["moe_layers_enum"] = listed;
  for (int i = 0; i < 3; ++i) text["layer_types"].push_back("sliding_attention");
  Json thetas = Json::array();
  for (const Json& kind : text["layer_types"]) thetas.push_back(kind == "full_attention" ? 5e6 : 1e4);
  text["rope_theta"] = thetas;
  Json wrapper = parse_json(R"({"model_type": "step3p7"})", "");
  wrapper["text_config"] = text;
  const ModelSpec spec = parse(wrapper);
  EXPECT_EQ(spec.rope.theta, 5e6);
  EXPECT_EQ(spec.sliding_rope.value().theta, 1e4);
  EXPECT_EQ(spec.layers, model_spec("step-3.7-flash").layers);
  EXPECT_EQ(shapes_of(spec), shapes_of(model_spec("step-3.7-flash")));
}

TEST(TwoShapes, gemma_4_takes_keys_for_values_in_full_layers) {
  const ModelSpec spec = model_spec("gemma-4-26b-a4b");
  EXPECT_EQ(sliding_layers(spec), 25U);
  EXPECT_EQ(spec.attention_shape(spec.layers[0]), (AttentionShape{16, 8, 256, 256}));
  EXPECT_EQ(spec.attention_shape(spec.layers[5]), (AttentionShape{16, 2, 512, 512}));
  EXPECT_EQ(spec.rope.scaling, "proportional");
  EXPECT_EQ(spec.rope.partial_rotary_factor, 0.25);
  EXPECT_EQ(spec.sliding_rope.value().theta, 1e4);
  EXPECT_TRUE(spec.tied_embeddings);
  Shapes shapes = shapes_of(spec);
  const std::string layers = "model.language_model.layers.";
  EXPECT_TRUE(shapes.contains(layers + "4.self_attn.v_proj.weight"));
  EXPECT_FALSE(shapes.contains(layers + "5.self_attn.v_proj.weight"));
  EXPECT_THAT(shapes[layers + "5.self_attn.q_norm.weight"], ElementsAre(512));
  EXPECT_THAT(shapes[layers + "0.experts.gate_up_proj"], ElementsAre(128, 1408, 2816));
  EXPECT_EQ(per_expert_names(spec, 0, 3).down, layers + "0.experts.3.down_proj.weight");
  Json config = model_config("gemma-4-26b-a4b");
  config["text_config"]["enable_moe_block"] = false;
  shapes = shapes_of(parse(config));
  EXPECT_FALSE(shapes.contains(layers + "0.router.scale"));
  EXPECT_THAT(shapes[layers + "0.mlp.up_proj.weight"], ElementsAre(2112, 2816));
}

// One key of a section ("" the top) changed, and what the message must say.
struct Refusal {
  const char *model, *section, *key, *value;
  std::vector<const char*> says;
};

class TwoShapesRefuse : public ::testing::TestWithParam<Refusal> {};

TEST_P(TwoShapesRefuse, naming_file_key_and_numbers) {
  const Refusal& refusal = GetParam();
  Json config = model_config(refusal.model);
  Json* section = &config;
  if (*refusal.section != '\0') section = &config["text_config"];
  if (std::string(refusal.section) != "text_config" && *refusal.section != '\0')
    section = std::string(refusal.section) == "mtp_config" ? &config["mtp_config"] : &(*section)[refusal.section];
  if (*refusal.value == '\0') {
    section->erase(refusal.key);
  } else {
    (*section)[refusal.key] = parse_json(refusal.value, "");
  }
  try {
    parse(config);
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.file(), "/m/config.json");
    EXPECT_FALSE(error.ways_out().empty());
    EXPECT_THAT(error.what(), HasSubstr(refusal.key));
    for (const char* text : refusal.says) EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

constexpr const char* kText = "text_config";
constexpr const char* kSparse = "sparse_attention_config";

INSTANTIATE_TEST_SUITE_P(
    Configs, TwoShapesRefuse,
    ::testing::Values(Refusal{"minimax-m3", kText, "sparse_attention_config", "", {"lacks"}},
                      Refusal{"minimax-m3", kSparse, "use_sparse_attention", "false", {"false"}},
                      Refusal{"minimax-m3", kSparse, "sparse_attention_freq", "", {"lacks"}},
                      Refusal{"minimax-m3", kSparse, "sparse_attention_freq", "[1]", {"1", "60"}},
                      Refusal{"minimax-m3", kText, "moe_layer_freq", "", {"lacks"}},
                      Refusal{"minimax-m3", kText, "moe_layer_freq", "[0, 2]", {"2", "60"}},
                      Refusal{"minimax-m3", kText, "rotary_dim", "32", {"partial_rotary_factor", "0.5"}},
                      Refusal{"minimax-m3", kText, "qk_norm_type", "\"per_layer\"", {"per_layer"}},
                      Refusal{"minimax-m3", kText, "scoring_func", "\"softmax\"", {"softmax"}},
                      Refusal{"minimax-m3", kText, "use_routing_bias", "false", {"false"}},
                      Refusal{"minimax-m3", kText, "attention_output_gate", "true", {"true"}},
                      Refusal{"llama-4-scout", kText, "attention_chunk_size", "", {"lacks"}},
                      Refusal{"llama-4-scout", kText, "no_rope_layers", "[1, 0]", {"2", "48"}},
                      Refusal{"llama-4-scout", kText, "layer_types", "[\"full_attention\"]", {"1", "48"}},
                      Refusal{"llama-4-maverick", kText, "moe_layers", "[48]", {"48"}},
                      Refusal{"llama-4-maverick", kText, "intermediate_size_mlp", "", {"lacks"}},
                      Refusal{"mimo-v2-flash", "", "hybrid_layer_pattern", "", {"lacks", "layer_types"}},
                      Refusal{"mimo-v2-flash", "", "moe_layer_freq", "", {"lacks"}},
                      Refusal{"mimo-v2-flash", "", "swa_num_key_value_heads", "7", {"64", "7"}},
                      Refusal{"mimo-v2-flash", "", "sliding_window_size", "127", {"128", "127"}},
                      Refusal{"mimo-v2-flash", "", "layernorm_epsilon", "", {"lacks"}},
                      Refusal{"mimo-v2.5-pro", "", "attention_projection_layout", "\"other\"", {"other"}},
                      Refusal{"inkling", kText, "local_layer_ids", "", {"lacks"}},
                      Refusal{"inkling", kText, "local_layer_ids", "[66]", {"66"}},
                      Refusal{"inkling", kText, "d_rel", "", {"lacks"}},
                      Refusal{"inkling", kText, "q_bias", "true", {"true"}},
                      Refusal{"inkling", kText, "use_sconv", "false", {"false"}},
                      Refusal{"inkling", kText, "unpadded_vocab_size", "201025", {"201025", "201024"}},
                      Refusal{"inkling", "mtp_config", "local_layer_ids", "[8]", {"8"}},
                      Refusal{"inkling", "mtp_config", "chain_hidden_post_norm", "true", {"true"}},
                      Refusal{"step-3.7-flash", "", "layer_types", "", {"lacks"}},
                      Refusal{"step-3.7-flash", "", "layer_types", "[\"full_attention\"]", {"1", "45", "3"}},
                      Refusal{"step-3.7-flash", "", "rope_theta", "[1.0, 2.0]", {"2", "45"}},
                      Refusal{"step-3.7-flash", "", "rope_theta", "[-1.0]", {"-1"}},
                      Refusal{"step-3.7-flash", "", "moe_layers_enum", "\"3,x\"", {"x"}},
                      Refusal{"step-3.7-flash", "", "moe_layers_enum", "\"48\"", {"48", "45"}},
                      Refusal{"step-3.7-flash", "", "num_sliding_attention_heads", "97", {"97", "8"}},
                      Refusal{"step-3.7-flash", "", "use_moe_router_bias", "false", {"false"}},
                      Refusal{"step-3.7-flash", "", "scoring_func", "\"softmax\"", {"softmax"}},
                      Refusal{"gemma-4-26b-a4b", kText, "hidden_size_per_layer_input", "", {"256"}},
                      Refusal{"gemma-4-26b-a4b", kText, "num_kv_shared_layers", "20", {"20"}},
                      Refusal{"gemma-4-26b-a4b", kText, "use_double_wide_mlp", "true", {}},
                      Refusal{"gemma-4-26b-a4b", kText, "num_global_key_value_heads", "3", {"16", "3"}},
                      Refusal{"gemma-4-26b-a4b", kText, "layer_types", "", {"lacks"}},
                      Refusal{"gemma-4-26b-a4b", kText, "rope_parameters", "", {"lacks"}}));

}  // namespace
}  // namespace nibble
