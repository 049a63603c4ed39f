// Models with latent attention and their neighbours: facts that parameter counts do not show, and configurations that
// must be refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/models/model_data_test.h"

namespace nibble {
namespace {

using testing::elements;
using ::testing::ElementsAre;
using testing::family_of;
using ::testing::HasSubstr;
using testing::model_config;
using testing::model_spec;

std::vector<size_t> layers_that(const ModelSpec& spec, const std::function<bool(const LayerSpec&)>& predicate) {
  std::vector<size_t> layers;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    if (predicate(spec.layers[i])) layers.push_back(i);
  }
  return layers;
}

std::vector<size_t> with_indexer(const ModelSpec& spec) {
  return layers_that(spec, [](const LayerSpec& layer) { return layer.indexer; });
}

std::map<std::string, ParamSpec> params_of(const ModelSpec& spec) {
  std::map<std::string, ParamSpec> params;
  family_of(spec).inventory(spec, [&](ParamSpec&& param) {
    const std::string name = param.name;
    EXPECT_TRUE(params.emplace(name, std::move(param)).second) << name;
  });
  return params;
}

using Shape = std::vector<uint64_t>;

ModelSpec changed(const char* model, const char* key, const char* value) {
  Json config = model_config(model);
  Json& at = config.contains("text_config") ? config["text_config"] : config;
  if (*value == '\0') {
    at.erase(key);
  } else {
    at[key] = parse_json(value, "");
  }
  return find_family(config)->parse(config, "/m/config.json");
}

TEST(LatentSpec, glm_4_7_flash_takes_what_its_file_lacks_from_transformers) {
  const ModelSpec spec = model_spec("glm-4.7-flash");
  EXPECT_EQ(spec.rms_norm_eps, 1e-5);
  EXPECT_TRUE(with_indexer(spec).empty());
  EXPECT_EQ(spec.routed_scaling_factor, 1.8);
  EXPECT_EQ(spec.mtp_layers, 0U);
  EXPECT_EQ(changed("glm-4.7-flash", "first_k_dense_replace", ""), spec);
}

TEST(LatentSpec, glm_5_has_an_indexer_everywhere_and_5_2_in_one_layer_of_four) {
  const ModelSpec five = model_spec("glm-5");
  EXPECT_EQ(five.indexer, (IndexerSpec{32, 128, 2048}));
  EXPECT_EQ(with_indexer(five).size(), 78U);
  const ModelSpec later = model_spec("glm-5.2");
  const std::vector<size_t> own = with_indexer(later);
  EXPECT_EQ(own.size(), 21U);
  EXPECT_THAT(std::vector<size_t>(own.begin(), own.begin() + 5), ElementsAre(0, 1, 2, 6, 10));
  EXPECT_EQ(changed("glm-5.2", "indexer_types", ""), later);  // the period says the same as the list
  const auto params = params_of(later);
  EXPECT_FALSE(params.contains("model.layers.3.self_attn.indexer.wk.weight"));
  EXPECT_TRUE(params.contains("model.layers.78.self_attn.indexer.wk.weight"));
  EXPECT_EQ(changed("glm-5", "first_k_dense_replace", "").layers, five.layers);
}

TEST(LatentSpec, glm_5_reads_a_pattern_of_letters) {
  Json config = model_config("glm-5");
  config["num_hidden_layers"] = 5;
  config["index_topk_pattern"] = "FSSFS";
  EXPECT_THAT(with_indexer(find_family(config)->parse(config, "")), ElementsAre(0, 3));
}

TEST(LatentSpec, hy_3) {
  const ModelSpec spec = model_spec("hy3");
  EXPECT_EQ(spec.qk_norm, QkNorm::kPerHead);
  EXPECT_EQ(spec.routed_scaling_factor, 2.826);
  EXPECT_EQ(spec.router, RouterKind::kSigmoidBias);
  EXPECT_EQ(spec.layers[0].mlp, MlpKind::kDense);
  EXPECT_EQ(changed("hy3", "first_k_dense_replace", ""), spec);
  EXPECT_EQ(changed("hy3", "rope_theta", ""), spec);
  const auto params = params_of(spec);
  EXPECT_EQ(params.at("model.layers.1.mlp.expert_bias").role, Role::kRouter);
  EXPECT_EQ(params.at("model.layers.79.mlp.shared_mlp.up_proj.weight").role, Role::kSharedExpert);
  EXPECT_EQ(params.at("model.layers.80.final_layernorm.weight").role, Role::kMtp);
}

TEST(LatentSpec, hy_4) {
  const ModelSpec spec = model_spec("hy4-preview");
  EXPECT_TRUE(spec.sinks && spec.output_gate);
  EXPECT_EQ(spec.hyper_streams, 4U);
  EXPECT_EQ(spec.activation, Activation::kClampedSwiglu);
  EXPECT_EQ(spec.swiglu_limit, 10.0);
  EXPECT_EQ(with_indexer(spec).size(), 21U);
  EXPECT_TRUE(spec.layers[77].indexer);
  EXPECT_EQ(changed("hy4-preview", "indexer_types", ""), spec);
  EXPECT_EQ(changed("hy4-preview", "mlp_layer_types", ""), spec);
}

// Numbers that a header listing of the release gives: 2006 tensors, of them 27 of the MTP layer.
TEST(LatentSpec, hy_4_has_the_tensors_of_its_release) {
  const auto params = params_of(model_spec("hy4-preview"));
  uint64_t sum = 0, mtp = 0;
  for (const auto& [name, param] : params) {
    sum += elements(param);
    mtp += param.role == Role::kMtp ? 1 : 0;
  }
  EXPECT_EQ(params.size(), 2006U);
  EXPECT_EQ(mtp, 27U);
  EXPECT_EQ(sum, 779960992733U);
  EXPECT_EQ(params.at("model.layers.0.hc_attn_layer.hc_pre.hc_fn").shape, (Shape{8, 24576}));
  EXPECT_EQ(params.at("model.hc_head.hc_head_fn").shape, (Shape{4, 24576}));
  EXPECT_EQ(params.at("model.layers.1.mlp.experts.gate_up_proj").shape, (Shape{256, 4096, 6144}));
  EXPECT_EQ(params.at("model.layers.0.self_attn.linear_gate.weight").shape, (Shape{16384, 6144}));
  EXPECT_EQ(params.at("model.mtp_layers.0.eh_proj.weight").shape, (Shape{6144, 12288}));
  EXPECT_TRUE(params.contains("model.mtp_layers.0.self_attn.learnable_sink_param"));
}

TEST(LatentSpec, mistral_routes_by_softmax) {
  const ModelSpec small = model_spec("mistral-small-4");
  EXPECT_EQ(small.router, RouterKind::kSoftmaxTopK);
  EXPECT_EQ(small.rope.scaling, "yarn");
  EXPECT_EQ(small.rope.factor, 128.0);
  EXPECT_TRUE(small.rope.interleaved);
  EXPECT_EQ(small.layers[0].mlp, MlpKind::kMoe);
  EXPECT_EQ(small.expert_naming.native, Fusion::kGateThenUp);
  const ModelSpec large = model_spec("mistral-large-3");
  EXPECT_EQ(large.router, RouterKind::kSoftmaxTopK);
  EXPECT_EQ(large.rope.factor, 36.0);
  EXPECT_EQ(large.layers[2].mlp, MlpKind::kDense);
  const auto params = params_of(large);
  EXPECT_EQ(params.at("layers.60.experts.127.w2.weight").shape, (Shape{7168, 4096}));
  EXPECT_EQ(params.at("layers.3.gate.weight").role, Role::kRouter);
  EXPECT_EQ(params.at("output.weight").role, Role::kHead);
}

TEST(LatentSpec, deepseek_v4_1_shares_what_few_layers_keep) {
  const ModelSpec spec = model_spec("deepseek-v4.1-flash");
  EXPECT_EQ(spec.model_type, "deepseek_v41");
  EXPECT_EQ(spec.layers[1].compress_ratio, 0U);
  EXPECT_EQ(spec.layers[19].compress_ratio, 2U);
  EXPECT_EQ(spec.layers[20].compress_ratio, 1U);
  EXPECT_EQ(spec.layers[39].sliding_window, 128U);
  EXPECT_THAT(layers_that(spec, [](const LayerSpec& l) { return l.stores_kv && l.stores_index; }),
              ElementsAre(2, 8, 14, 20));
  EXPECT_THAT(with_indexer(spec), ElementsAre(2, 8, 14, 20, 24, 28, 32, 36));
  EXPECT_EQ(spec.indexer, (IndexerSpec{32, 128, 512}));
  EXPECT_EQ(spec.router, RouterKind::kSqrtSoftplusBias);
  EXPECT_EQ(spec.rope.compress_theta, 160000.0);
  EXPECT_EQ(spec.mtp_layers, 0U);
  EXPECT_EQ(spec.unlisted_mtp_layers, 3U);
  EXPECT_THAT(spec.memory_tables, ElementsAre(MemoryTable{1, 384006168, 256, 24}, MemoryTable{14, 384016682, 256, 24}));
}

TEST(LatentSpec, deepseek_v4_1_has_the_tensors_of_its_release) {
  const auto params = params_of(model_spec("deepseek-v4.1-flash"));
  const auto count = [&](const std::string& ending) {
    return std::count_if(params.begin(), params.end(), [&](const auto& entry) {
      const std::string& name = entry.first;
      return name.size() > ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
    });
  };
  EXPECT_EQ(count(".attn.compressor.wkv.weight"), 4);
  EXPECT_EQ(count(".attn.compressor.wgate.weight"), 3);
  EXPECT_EQ(count(".attn.indexer.wq_b.weight"), 8);
  EXPECT_EQ(count(".attn.indexer.wk.weight"), 4);
  EXPECT_EQ(count(".w1.weight"), 40 * 385);
  EXPECT_EQ(params.at("layers.2.attn.compressor.wkv.weight").shape, (Shape{512, 5120}));
  EXPECT_EQ(params.at("layers.2.attn.indexer.wk.weight").shape, (Shape{128, 512}));
  EXPECT_EQ(params.at("layers.1.engram.wkv.weight").shape, (Shape{25600, 6144}));
  EXPECT_FALSE(params.at("layers.14.engram.embed.weight").counted);
  EXPECT_FALSE(params.contains("hc_head_fn"));
}

struct Refusal {
  const char *model, *key, *value;
  std::vector<const char*> says;
};

class LatentRefused : public ::testing::TestWithParam<Refusal> {};

TEST_P(LatentRefused, names_file_key_and_numbers) {
  const Refusal& refusal = GetParam();
  try {
    changed(refusal.model, refusal.key, refusal.value);
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.file(), "/m/config.json");
    EXPECT_FALSE(error.ways_out().empty());
    EXPECT_THAT(error.what(), HasSubstr(refusal.key));
    for (const char* text : refusal.says) EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

std::string repeated(const std::string& first, const std::string& rest, size_t count) {
  std::string list = "[" + first;
  for (size_t i = 1; i < count; ++i) list += ", " + rest;
  return list + "]";
}

const std::string kSharedFirst = repeated("\"shared\"", "\"full\"", 78);
const std::string kUnknownKind = repeated("\"full\"", "\"lazy\"", 78);

INSTANTIATE_TEST_SUITE_P(
    Configs, LatentRefused,
    ::testing::Values(Refusal{"glm-5.2", "indexer_types", "[\"full\"]", {"1", "78"}},
                      Refusal{"glm-5.2", "indexer_types", kSharedFirst.c_str(), {"layer", "0"}},
                      Refusal{"hy4-preview", "indexer_types", kUnknownKind.c_str(), {"lazy", "1"}},
                      Refusal{"glm-5", "index_topk_pattern", "\"FFS\"", {"3", "78"}},
                      Refusal{"glm-5", "index_topk_freq", "0", {"0"}},
                      Refusal{"hy4-preview", "gating_type", "\"headwise\"", {"headwise"}},
                      Refusal{"hy4-preview", "q_lora_rank", "", {"indexer"}},
                      Refusal{"hy4-preview", "hc_mult", "", {"lacks"}},
                      Refusal{"mistral-large-3", "q_lora_rank", "0", {"bottleneck"}},
                      Refusal{"deepseek-v4.1-flash", "compress_ratios", "", {"lacks"}},
                      Refusal{"deepseek-v4.1-flash", "compress_ratios", "[0, 2]", {"2", "40"}},
                      Refusal{"deepseek-v4.1-flash", "kv_source_layer_ids", "[]", {"2"}},
                      Refusal{"deepseek-v4.1-flash", "kv_source_layer_ids", "[2, 8, 14]", {"20", "1"}},
                      Refusal{"deepseek-v4.1-flash", "kv_source_layer_ids", "[2, 40]", {"40"}},
                      Refusal{"deepseek-v4.1-flash", "kv_source_layer_ids", "[1]", {"1", "40"}},
                      Refusal{"deepseek-v4.1-flash", "index_source_layer_ids", "[2, 8, 20]", {"14"}},
                      Refusal{"deepseek-v4.1-flash", "index_source_layer_ids", "", {"lacks"}},
                      Refusal{"deepseek-v4.1-flash", "engram_num_embeddings", "[7]", {"1", "2"}},
                      Refusal{"deepseek-v4.1-flash", "engram_layer_ids", "[1, 40]", {"39", "40"}}));

}  // namespace
}  // namespace nibble
