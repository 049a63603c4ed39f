#include "nibble/models/expert_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nibble/models/model_data_test.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using testing::model_spec;

std::vector<ParamSpec> collect(const ModelSpec& spec, int32_t layer, ExpertStorage form) {
  std::vector<ParamSpec> params;
  visit_experts(spec, layer, form, [&](ParamSpec&& param) { params.push_back(std::move(param)); });
  return params;
}

TEST(ExpertForms, names_of_one_expert_are_the_families) {
  const ExpertNames qwen = per_expert_names(model_spec("qwen3-30b-a3b"), 5, 127);
  EXPECT_EQ(qwen.gate, "model.layers.5.mlp.experts.127.gate_proj.weight");
  EXPECT_EQ(qwen.down, "model.layers.5.mlp.experts.127.down_proj.weight");
  EXPECT_EQ(qwen.gate_bias, "");
  // w1 = gate, w3 = up, w2 = down, always (FORMATS.md §10).
  const ExpertNames minimax = per_expert_names(model_spec("minimax-m2.7"), 0, 1);
  EXPECT_EQ(minimax.gate, "model.layers.0.block_sparse_moe.experts.1.w1.weight");
  EXPECT_EQ(minimax.up, "model.layers.0.block_sparse_moe.experts.1.w3.weight");
  EXPECT_EQ(minimax.down, "model.layers.0.block_sparse_moe.experts.1.w2.weight");
  EXPECT_EQ(per_expert_names(model_spec("kimi-k2.5"), 60, 383).up,
            "language_model.model.layers.60.mlp.experts.383.up_proj.weight");
  EXPECT_EQ(per_expert_names(model_spec("deepseek-v4-flash"), 43, 0).gate, "mtp.0.ffn.experts.0.w1.weight");
  const ExpertNames gpt_oss = per_expert_names(model_spec("gpt-oss-20b"), 0, 3);
  EXPECT_EQ(gpt_oss.up, "model.layers.0.mlp.experts.3.up_proj.weight");
  EXPECT_EQ(gpt_oss.up_bias, "model.layers.0.mlp.experts.3.up_proj.bias");
}

TEST(ExpertForms, names_of_stacks) {
  const ModelSpec spec = model_spec("gpt-oss-20b");
  EXPECT_EQ(fused_name(spec, 3, Projection::kGateUp), "model.layers.3.mlp.experts.gate_up_proj");
  EXPECT_EQ(fused_name(spec, 3, Projection::kDown), "model.layers.3.mlp.experts.down_proj");
  EXPECT_EQ(fused_bias_name(spec, 3, Projection::kGateUp), "model.layers.3.mlp.experts.gate_up_proj_bias");
}

TEST(ExpertForms, shapes_of_kimi_k3_in_its_latent_space) {
  const ModelSpec spec = model_spec("kimi-k3");
  const auto fused = collect(spec, 1, ExpertStorage::kGateThenUp);
  ASSERT_EQ(fused.size(), 2U);
  EXPECT_THAT(fused[0].shape, ElementsAre(896, 6144, 3584));
  EXPECT_EQ(fused[0].fusion, Fusion::kGateThenUp);
  EXPECT_THAT(fused[1].shape, ElementsAre(896, 3584, 3072));
  EXPECT_EQ(fused[1].fusion, Fusion::kStackedExperts);
  const auto stacked = collect(spec, 1, ExpertStorage::kStacked);
  ASSERT_EQ(stacked.size(), 3U);
  EXPECT_THAT(stacked[1].shape, ElementsAre(896, 3072, 3584));
  EXPECT_EQ(collect(spec, 1, ExpertStorage::kPerExpert).size(), 896U * 3);
}

TEST(ExpertForms, gpt_oss_transposes_in_its_own_form_alone) {
  const ModelSpec gpt_oss = model_spec("gpt-oss-20b");
  EXPECT_EQ(native_form(gpt_oss), ExpertStorage::kInterleaved);
  for (const ParamSpec& param : collect(gpt_oss, 0, ExpertStorage::kInterleaved))
    EXPECT_EQ(param.transposed_when_dense, param.role == Role::kRoutedExpert) << param.name;
  for (const ParamSpec& param : collect(gpt_oss, 0, ExpertStorage::kStacked)) EXPECT_FALSE(param.transposed_when_dense);
  const ModelSpec qwen = model_spec("qwen3-30b-a3b");
  EXPECT_EQ(native_form(qwen), ExpertStorage::kPerExpert);
  for (const ParamSpec& param : collect(qwen, 0, ExpertStorage::kInterleaved))
    EXPECT_FALSE(param.transposed_when_dense);
}

TEST(ExpertForms, all_forms_hold_the_same_number_of_elements) {
  for (const char* model : {"gpt-oss-20b", "qwen3-30b-a3b", "kimi-k3", "minimax-m2.7"}) {
    const ModelSpec spec = model_spec(model);
    std::vector<uint64_t> sums;
    for (const auto form : {ExpertStorage::kPerExpert, ExpertStorage::kStacked, ExpertStorage::kGateThenUp,
                            ExpertStorage::kInterleaved}) {
      sums.push_back(0);
      for (const ParamSpec& param : collect(spec, 1, form)) sums.back() += testing::elements(param);
    }
    EXPECT_THAT(sums, ::testing::Each(sums[0])) << model;
  }
}

TEST(ExpertForms, experts_of_mtp_layers_are_mtp) {
  const ModelSpec spec = model_spec("deepseek-v3");
  const auto params = collect(spec, 61, ExpertStorage::kPerExpert);
  EXPECT_EQ(params[0].name, "model.layers.61.mlp.experts.0.gate_proj.weight");
  EXPECT_EQ(params[0].role, Role::kMtp);
  EXPECT_TRUE(params[0].optional);
}

}  // namespace
}  // namespace nibble
