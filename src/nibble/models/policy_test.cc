#include "nibble/models/policy.h"

#include <gtest/gtest.h>

#include <map>

#include "nibble/models/model_data_test.h"

namespace nibble {
namespace {

std::map<std::string, Keep16> verdicts(const std::string& model) {
  const ModelSpec spec = testing::model_spec(model);
  std::map<std::string, Keep16> result;
  testing::family_of(spec).inventory(spec, [&](ParamSpec&& param) { result[param.name] = keep16(param); });
  return result;
}

// FORMATS.md §10: left in 16 or 32 bits everywhere: embeddings, norms, router weight and correction bias, sinks, MTP
// glue; attention, shared experts, first dense layers, head: it varies; routed experts are what is quantized.
TEST(Policy, as_releases_do) {
  auto deepseek = verdicts("deepseek-v3");
  EXPECT_EQ(deepseek.at("model.embed_tokens.weight"), Keep16::kAlways);
  EXPECT_EQ(deepseek.at("lm_head.weight"), Keep16::kUsually);
  EXPECT_EQ(deepseek.at("model.layers.9.mlp.gate.weight"), Keep16::kAlways);
  EXPECT_EQ(deepseek.at("model.layers.9.mlp.gate.e_score_correction_bias"), Keep16::kAlways);
  EXPECT_EQ(deepseek.at("model.layers.9.self_attn.kv_b_proj.weight"), Keep16::kUsually);
  EXPECT_EQ(deepseek.at("model.layers.0.mlp.up_proj.weight"), Keep16::kUsually);
  EXPECT_EQ(deepseek.at("model.layers.9.mlp.shared_experts.up_proj.weight"), Keep16::kUsually);
  EXPECT_EQ(deepseek.at("model.layers.9.mlp.experts.7.up_proj.weight"), Keep16::kFree);
  EXPECT_EQ(deepseek.at("model.layers.61.eh_proj.weight"), Keep16::kAlways);
  EXPECT_EQ(deepseek.at("model.layers.61.mlp.gate.weight"), Keep16::kAlways);
  EXPECT_EQ(deepseek.at("model.layers.61.mlp.experts.7.up_proj.weight"), Keep16::kFree);
  EXPECT_EQ(deepseek.at("model.layers.61.self_attn.o_proj.weight"), Keep16::kUsually);
  auto gpt_oss = verdicts("gpt-oss-20b");
  EXPECT_EQ(gpt_oss.at("model.layers.0.self_attn.sinks"), Keep16::kAlways);
  EXPECT_EQ(gpt_oss.at("model.layers.0.mlp.experts.gate_up_proj"), Keep16::kFree);
  EXPECT_EQ(gpt_oss.at("model.layers.0.mlp.experts.gate_up_proj_bias"), Keep16::kAlways);
  EXPECT_EQ(verdicts("kimi-k3").at("language_model.model.layers.1.block_sparse_moe.routed_expert_up_proj.weight"),
            Keep16::kUsually);
}

}  // namespace
}  // namespace nibble
