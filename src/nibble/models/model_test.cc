#include "nibble/models/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nibble/base/strings.h"
#include "nibble/models/tiny_model_test.h"
#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::load;
using testing::Loaded;
using testing::tiny_gpt_oss;
using testing::tiny_kimi_k25;
using testing::tiny_qwen3;
using testing::TinyModel;
using testing::value_of;

// ---- everything fits

// tests/golden/models: saved by transformers 5.24, quantized by compressed-tensors and ModelOpt.
struct Golden {
  const char *folder, *family;
  size_t routed_experts;  // weights of that role
};

class GoldenModel : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenModel, matches_without_a_remark) {
  const Loaded loaded = load(testing::golden_dir() / "models" / GetParam().folder);
  for (const Finding& finding : loaded.findings)
    ADD_FAILURE() << finding.rule << " " << finding.tensor << ": " << finding.message;
  EXPECT_EQ(loaded.model.family_name, GetParam().family);
  EXPECT_EQ(loaded.count(Role::kRoutedExpert), GetParam().routed_experts);
  EXPECT_EQ(loaded.count(Role::kUnknown), 0U);
  for (size_t i = 0; i < loaded.model.params.size(); ++i)
    EXPECT_EQ(loaded.model.params[i].name, loaded.model.table.weights()[i].name);
}

INSTANTIATE_TEST_SUITE_P(
    Folders, GoldenModel,
    ::testing::Values(Golden{"qwen3_moe", "qwen3_moe", 24}, Golden{"mixtral", "mixtral", 24},
                      Golden{"minimax_m2", "minimax_m2", 24}, Golden{"glm4_moe", "glm4_moe", 12},
                      Golden{"deepseek_v3", "deepseek_v3", 12}, Golden{"kimi_k2", "deepseek_v3", 12},
                      Golden{"gpt_oss", "gpt_oss", 4}, Golden{"llama", "llama", 0},
                      Golden{"gpt_oss_mxfp4", "gpt_oss", 4}, Golden{"qwen3_moe_int4", "qwen3_moe", 24},
                      Golden{"qwen3_moe_nvfp4", "qwen3_moe", 24}, Golden{"deepseek_v3_fp8", "deepseek_v3", 12},
                      Golden{"llama_gguf/model.gguf", "llama", 0}, Golden{"gpt_oss_gguf/model.gguf", "gpt_oss", 6}),
    [](const auto& test) {
      const std::string folder = test.param.folder;
      return folder.substr(0, folder.find('/'));
    });

TEST(Model, tiny_of_the_cases_has_45_tensors) {
  const TinyModel tiny = tiny_qwen3();
  EXPECT_EQ(tiny.tensors.size(), 45U);
  const Loaded loaded = load(tiny);
  EXPECT_TRUE(loaded.findings.empty());
  const ParamSpec& down = loaded.param("model.layers.1.mlp.experts.3.down_proj.weight");
  EXPECT_EQ(down.layer, 1);
  EXPECT_EQ(down.expert, 3);
  EXPECT_EQ(down.projection, Projection::kDown);
  EXPECT_THAT(down.shape, ElementsAre(64, 32));
}

// ---- forms of experts

TEST(Model, C15_dense_stacks_of_gpt_oss_are_transposed_whatever_their_shape) {
  // H = 2I: (E, H, 2I) is square. Read the other way nothing would fail; the family must decide.
  const Loaded loaded = load(tiny_gpt_oss());
  EXPECT_TRUE(loaded.findings.empty());
  const std::string name = "model.layers.0.mlp.experts.gate_up_proj";
  EXPECT_THAT(loaded.weight(name).shape, ElementsAre(4, 64, 64));
  EXPECT_EQ(loaded.weight(name).row_order, RowOrder::kTransposed);
  EXPECT_EQ(loaded.param(name).fusion, Fusion::kInterleaved);
  const Weight& down = loaded.weight("model.layers.1.mlp.experts.down_proj");
  EXPECT_THAT(down.shape, ElementsAre(4, 64, 32));  // stored (4, 32, 64)
  EXPECT_EQ(down.row_order, RowOrder::kTransposed);
}

TEST(Model, C15_dense_stacks_of_other_families_are_not_transposed) {
  TinyModel tiny = tiny_qwen3();
  tiny.erase_experts();
  for (const char* layer : {"0", "1"}) {
    const std::string experts = std::string("model.layers.") + layer + ".mlp.experts.";
    tiny.add(experts + "gate_up_proj", {4, 64, 64});
    tiny.add(experts + "down_proj", {4, 64, 32});
  }
  const Loaded loaded = load(tiny);
  EXPECT_TRUE(loaded.findings.empty());
  EXPECT_EQ(loaded.count(Role::kRoutedExpert), 4U);
  const ParamSpec& pair = loaded.param("model.layers.0.mlp.experts.gate_up_proj");
  EXPECT_EQ(pair.fusion, Fusion::kGateThenUp);
  EXPECT_EQ(pair.projection, Projection::kGateUp);
  EXPECT_EQ(loaded.weight(pair.name).row_order, RowOrder::kPlain);
  EXPECT_EQ(loaded.param("model.layers.1.mlp.experts.down_proj").fusion, Fusion::kStackedExperts);
}

TEST(Model, a_dense_stack_stored_the_other_way_is_refused_with_both_shapes) {
  TinyModel tiny = tiny_gpt_oss();
  tiny.add("model.layers.0.mlp.experts.down_proj", {4, 64, 32});
  const auto mismatches = load(tiny).of("shape-mismatch");
  ASSERT_EQ(mismatches.size(), 1U);
  EXPECT_EQ(mismatches[0].tensor, "model.layers.0.mlp.experts.down_proj");
  EXPECT_THAT(mismatches[0].values, ::testing::Contains(std::pair<std::string, std::string>("stored", "[4, 64, 32]")));
  EXPECT_THAT(mismatches[0].values,
              ::testing::Contains(std::pair<std::string, std::string>("expected", "[4, 32, 64]")));
}

TEST(Model, gpt_oss_experts_one_by_one) {
  TinyModel tiny = tiny_gpt_oss();
  tiny.erase_experts();
  const ModelSpec spec = tiny.spec();
  for (int32_t layer : {0, 1}) {
    visit_experts(spec, layer, ExpertStorage::kPerExpert,
                  [&](ParamSpec&& param) { tiny.add(param.name, param.shape); });
  }
  const Loaded loaded = load(tiny);
  EXPECT_TRUE(loaded.findings.empty());
  EXPECT_EQ(loaded.count(Role::kRoutedExpert), 24U);
  const ParamSpec& bias = loaded.param("model.layers.0.mlp.experts.2.up_proj.bias");
  EXPECT_EQ(bias.role, Role::kBias);
  EXPECT_EQ(bias.expert, 2);
  EXPECT_EQ(bias.projection, Projection::kUp);
}

TEST(Model, qwen3_in_the_gpt_oss_layout) {
  TinyModel tiny = tiny_qwen3();
  tiny.erase_experts();
  for (const char* layer : {"0", "1"}) {
    const std::string experts = std::string("model.layers.") + layer + ".mlp.experts.";
    tiny.add(experts + "gate_up_proj_blocks", {4, 64, 2, 16}, Dtype::kU8);
    tiny.add(experts + "gate_up_proj_scales", {4, 64, 2}, Dtype::kU8);
    tiny.add(experts + "gate_up_proj_bias", {4, 64});
    tiny.add(experts + "down_proj_blocks", {4, 64, 1, 16}, Dtype::kU8);
    tiny.add(experts + "down_proj_scales", {4, 64, 1}, Dtype::kU8);
  }
  const Loaded loaded = load(tiny);
  EXPECT_TRUE(loaded.findings.empty());
  const ParamSpec& pair = loaded.param("model.layers.1.mlp.experts.gate_up_proj");
  EXPECT_EQ(pair.fusion, Fusion::kInterleaved);
  EXPECT_THAT(pair.shape, ElementsAre(4, 64, 64));
  EXPECT_EQ(loaded.weight(pair.name).row_order, RowOrder::kPlain);
  EXPECT_EQ(loaded.param("model.layers.1.mlp.experts.gate_up_proj_bias").role, Role::kBias);
}

TEST(Model, one_layer_may_differ_from_the_next) {
  TinyModel tiny = tiny_qwen3();
  tiny.erase_prefix("model.layers.1.mlp.experts.");
  for (const char* projection : {"gate_proj", "up_proj"})
    tiny.add(std::string("model.layers.1.mlp.experts.") + projection, {4, 32, 64});
  tiny.add("model.layers.1.mlp.experts.down_proj", {4, 64, 32});
  const Loaded loaded = load(tiny);
  EXPECT_TRUE(loaded.findings.empty());
  EXPECT_EQ(loaded.count(Role::kRoutedExpert), 12U + 3U);
  EXPECT_EQ(loaded.param("model.layers.1.mlp.experts.up_proj").fusion, Fusion::kStackedExperts);
}

// ---- GGUF

TEST(Model, gguf_queries_and_keys_of_llama_lie_in_rotary_pairs) {
  const Loaded loaded = load(testing::golden_dir() / "models" / "llama_gguf" / "model.gguf");
  EXPECT_TRUE(loaded.model.from_gguf);
  const Weight& q = loaded.weight("model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(q.row_order, RowOrder::kGgufRotaryPairs);
  EXPECT_EQ(q.rotary_heads, 4U);
  EXPECT_EQ(loaded.weight("model.layers.0.self_attn.k_proj.weight").rotary_heads, 2U);
  EXPECT_EQ(loaded.weight("model.layers.0.self_attn.v_proj.weight").row_order, RowOrder::kPlain);
}

TEST(Model, what_a_gguf_lacks_is_said_of_the_file) {
  const testing::TempDir dir;
  std::string gguf = read_text(testing::golden_dir() / "models" / "llama_gguf" / "model.gguf", UINT64_MAX);
  const size_t at = gguf.find("blk.0.attn_k.weight");
  ASSERT_NE(at, std::string::npos);
  gguf.replace(at, 12, "blk.0.attn_x");
  write_atomically(dir / "other.gguf", gguf);
  const Loaded loaded = load(dir / "other.gguf");
  bool found = false;
  for (const Finding& finding : loaded.findings) {
    if (finding.rule != "empty-parameter") continue;
    found = true;
    EXPECT_EQ(finding.file, (dir / "other.gguf").string());
  }
  EXPECT_TRUE(found);
}

TEST(Model, gguf_experts_of_gpt_oss_are_stacks_of_one_projection) {
  const Loaded loaded = load(testing::golden_dir() / "models" / "gpt_oss_gguf" / "model.gguf");
  const std::string experts = "model.layers.1.mlp.experts.";
  EXPECT_EQ(loaded.param(experts + "gate_proj").fusion, Fusion::kStackedExperts);
  EXPECT_EQ(loaded.param(experts + "gate_proj").projection, Projection::kGate);
  EXPECT_THAT(loaded.weight(experts + "gate_proj").shape, ElementsAre(4, 32, 64));
  EXPECT_THAT(loaded.weight(experts + "down_proj").shape, ElementsAre(4, 64, 32));
  EXPECT_EQ(loaded.weight(experts + "down_proj").row_order, RowOrder::kPlain);
  EXPECT_EQ(loaded.param(experts + "up_proj_bias").role, Role::kBias);
  EXPECT_EQ(loaded.weight("model.layers.1.self_attn.q_proj.weight").row_order, RowOrder::kPlain);
}

// ---- what does not fit

TEST(Model, C53_unexpected_names_are_counted_and_the_nearest_is_named) {
  TinyModel tiny = tiny_qwen3();
  tiny.rename([](std::string name) {
    const size_t at = name.find("mlp.experts.");
    return at == std::string::npos ? name : name.replace(at, 12, "mlp.switch_mlp.");
  });
  const Loaded loaded = load(tiny);
  ASSERT_FALSE(loaded.findings.empty());
  const Finding& first = loaded.findings.front();
  EXPECT_EQ(first.rule, "unmatched-tensor");
  EXPECT_EQ(first.severity, Severity::kError);
  EXPECT_THAT(first.message, HasSubstr("24 unmatched tensors, 24 empty parameters"));
  EXPECT_EQ(first.tensor, "model.layers.0.mlp.switch_mlp.0.down_proj.weight");
  EXPECT_EQ(value_of(first, "nearest"), "model.layers.0.mlp.experts.0.down_proj.weight");
  // One finding a kind: gate, up and down on either side, and the summary.
  EXPECT_EQ(loaded.of("unmatched-tensor").size(), 4U);
  EXPECT_EQ(loaded.of("empty-parameter").size(), 3U);
  EXPECT_EQ(value_of(loaded.of("empty-parameter")[0], "count"), "8");
}

TEST(Model, C55_a_missing_router_is_named) {
  TinyModel tiny = tiny_qwen3();
  tiny.tensors.erase("model.layers.1.mlp.gate.weight");
  const Loaded loaded = load(tiny);
  ASSERT_EQ(loaded.findings.size(), 1U);
  EXPECT_EQ(loaded.findings[0].rule, "empty-parameter");
  EXPECT_EQ(loaded.findings[0].severity, Severity::kError);
  EXPECT_EQ(loaded.findings[0].tensor, "model.layers.1.mlp.gate.weight");
}

TEST(Model, C27_tensors_unknown_to_the_family_are_noted_and_kept) {
  TinyModel tiny = tiny_qwen3();
  tiny.add("mtp.0.eh_proj.weight", {64, 128});
  tiny.add("mtp.0.norm.weight", {64});
  const Loaded loaded = load(tiny);
  ASSERT_EQ(loaded.findings.size(), 1U);
  EXPECT_EQ(loaded.findings[0].severity, Severity::kNote);
  EXPECT_EQ(loaded.findings[0].message,
            "2 tensors unknown to the family, copied: mtp.0.eh_proj.weight, mtp.0.norm.weight");
  EXPECT_EQ(loaded.param("mtp.0.eh_proj.weight").role, Role::kUnknown);
}

TEST(Model, C23_roles_go_by_the_whole_name) {
  TinyModel tiny = tiny_qwen3();
  for (const char* name : {"mlp.gate_proj", "mlp.shared_expert_gate", "mlpXgate"})
    tiny.add(std::string("model.layers.0.") + name + ".weight", {64, 64});
  const Loaded loaded = load(tiny);
  EXPECT_FALSE(has_error(loaded.findings));
  EXPECT_EQ(loaded.param("model.layers.0.mlp.gate.weight").role, Role::kRouter);
  EXPECT_EQ(loaded.param("model.layers.0.mlp.experts.3.gate_proj.weight").role, Role::kRoutedExpert);
  for (const char* name : {"mlp.gate_proj", "mlp.shared_expert_gate", "mlpXgate"})
    EXPECT_EQ(loaded.param(std::string("model.layers.0.") + name + ".weight").role, Role::kUnknown) << name;
}

TEST(Model, a_shape_that_contradicts_the_configuration) {
  TinyModel tiny = tiny_qwen3();
  tiny.add("model.layers.0.self_attn.k_proj.weight", {64, 64});
  tiny.add("model.layers.1.self_attn.k_proj.weight", {64, 64});
  const auto mismatches = load(tiny).of("shape-mismatch");
  ASSERT_EQ(mismatches.size(), 1U);
  EXPECT_EQ(mismatches[0].tensor, "model.layers.0.self_attn.k_proj.weight");
  EXPECT_THAT(mismatches[0].file, HasSubstr("model.safetensors"));
  EXPECT_THAT(mismatches[0].values, ElementsAre(std::pair<std::string, std::string>("stored", "[64, 64]"),
                                                std::pair<std::string, std::string>("expected", "[32, 64]"),
                                                std::pair<std::string, std::string>("count", "2")));
}

TEST(Model, ties) {
  TinyModel tiny = tiny_qwen3();
  tiny.tensors.erase("lm_head.weight");
  ASSERT_EQ(load(tiny).of("tie-mismatch").size(), 1U);
  tiny.set("tie_word_embeddings", "true");
  EXPECT_TRUE(load(tiny).findings.empty());
  tiny.add("lm_head.weight", {256, 64});
  EXPECT_EQ(load(tiny).of("tie-mismatch", Severity::kWarning).size(), 1U);
}

TEST(Model, a_configuration_that_cannot_be_read) {
  TinyModel tiny = tiny_qwen3();
  tiny.set("moe_intermediate_size", "");
  const Loaded loaded = load(tiny);
  ASSERT_EQ(loaded.findings.size(), 1U);
  EXPECT_EQ(loaded.findings[0].rule, "bad-config");
  EXPECT_THAT(loaded.findings[0].message, HasSubstr("moe_intermediate_size"));
  EXPECT_THAT(loaded.findings[0].file, HasSubstr("config.json"));
  EXPECT_EQ(loaded.count(Role::kUnknown), 45U);
}

TEST(Model, an_unknown_family_has_unknown_roles) {
  TinyModel tiny = tiny_qwen3();
  tiny.set("model_type", "\"mystery\"");
  tiny.set("architectures", R"(["MysteryForCausalLM"])");
  const Loaded loaded = load(tiny);
  ASSERT_EQ(loaded.of("unknown-family", Severity::kNote).size(), 1U);
  EXPECT_EQ(loaded.model.family, nullptr);
  EXPECT_EQ(loaded.model.family_name, "mystery");
  EXPECT_THAT(loaded.param("lm_head.weight").shape, ElementsAre(256, 64));
}

// ---- what the name says although no family lists it

TEST(Model, C65_biases_cache_scales_and_rotary_tables_have_roles) {
  TinyModel tiny = tiny_qwen3();
  const std::string attention = "model.layers.0.self_attn.";
  tiny.add(attention + "q_proj.bias", {64});
  // C65: the field's spellings.
  const std::vector<std::string> scales{"k_scale",
                                        "v_scale",
                                        "kv_scale",
                                        "k_proj.k_scale",
                                        "v_proj.v_scale",
                                        "k_proj.output_scale",
                                        "v_proj.output_scale"};
  for (const std::string& scale : scales) tiny.add(attention + scale, {1}, Dtype::kF32);
  tiny.add(attention + "rotary_emb.inv_freq", {8}, Dtype::kF32);
  const Loaded loaded = load(tiny);
  for (const Finding& finding : loaded.findings) ADD_FAILURE() << finding.rule << " " << finding.message;
  EXPECT_EQ(loaded.param(attention + "q_proj.bias").role, Role::kBias);
  EXPECT_EQ(loaded.param(attention + "q_proj.bias").projection, Projection::kQ);
  EXPECT_EQ(loaded.param(attention + "rotary_emb.inv_freq").role, Role::kAttention);
  for (const std::string& scale : scales) EXPECT_EQ(loaded.param(attention + scale).role, Role::kAttention) << scale;
}

TEST(Model, a_bias_of_the_wrong_length) {
  TinyModel tiny = tiny_qwen3();
  tiny.add("model.layers.0.self_attn.q_proj.bias", {63});
  EXPECT_EQ(load(tiny).of("shape-mismatch").size(), 1U);
}

TEST(Model, the_vision_tower_is_another_part) {
  TinyModel tiny = tiny_kimi_k25();
  tiny.add("vision_tower.encoder.blocks.0.wqkv.weight", {96, 32});
  tiny.add("mm_projector.proj.0.weight", {64, 32});
  const Loaded loaded = load(tiny);
  ASSERT_EQ(loaded.findings.size(), 1U);
  EXPECT_EQ(loaded.findings[0].rule, "other-part");
  EXPECT_EQ(loaded.findings[0].severity, Severity::kNote);
  EXPECT_THAT(loaded.findings[0].message, HasSubstr("2 tensors"));
  EXPECT_EQ(loaded.param("mm_projector.proj.0.weight").role, Role::kUnknown);
}

TEST(Model, mtp_layers_may_be_missing_but_not_in_part) {
  TinyModel tiny = tiny_kimi_k25();
  const std::string mtp = "language_model.model.layers.2.";
  EXPECT_TRUE(load(tiny).findings.empty());
  tiny.add(mtp + "something.weight", {64});
  EXPECT_EQ(load(tiny).param(mtp + "something.weight").role, Role::kMtp);
  tiny.tensors.erase(mtp + "embed_tokens.weight");  // a copy
  EXPECT_TRUE(load(tiny).findings.empty());
  tiny.tensors.erase(mtp + "mlp.experts.2.up_proj.weight");
  const auto partial = load(tiny).of("empty-parameter", Severity::kWarning);
  ASSERT_EQ(partial.size(), 1U);
  EXPECT_EQ(partial[0].tensor, mtp + "mlp.experts.2.up_proj.weight");
  tiny.erase_prefix(mtp);
  EXPECT_TRUE(load(tiny).findings.empty());
}

// ---- helpers

TEST(Model, fusion_keys) {
  const auto key = [](std::string_view name, Projection projection, size_t rank = 2) {
    return fusion_key(projection, name, rank);
  };
  EXPECT_EQ(key("l.0.mlp.experts.3.gate_proj.weight", Projection::kGate),
            key("l.0.mlp.experts.3.up_proj.weight", Projection::kUp));
  EXPECT_NE(key("l.0.mlp.experts.3.w1.weight", Projection::kGate), key("l.0.mlp.experts.4.w3.weight", Projection::kUp));
  EXPECT_EQ(key("a.q_proj.weight", Projection::kQ), key("a.v_proj.weight", Projection::kV));
  EXPECT_NE(key("a.q_proj.weight", Projection::kQ), key("a.gate_proj.weight", Projection::kGate));
  EXPECT_EQ(key("a.o_proj.weight", Projection::kO), "");
  EXPECT_EQ(key("a.q_proj.bias", Projection::kQ, 1), "");
  EXPECT_EQ(key("m.experts.gate_up_proj", Projection::kGateUp), "");
}

}  // namespace
}  // namespace nibble
