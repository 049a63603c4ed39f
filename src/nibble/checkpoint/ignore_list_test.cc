#include "nibble/checkpoint/ignore_list.h"

#include <gtest/gtest.h>

namespace nibble {
namespace {

TEST(IgnoreList, RegularExpressionsMatchFromTheStart) {
  const IgnoreList list({"re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "lm_head", "re:model"}, false);
  EXPECT_FALSE(list.covering("model.layers.0.mlp.gate_proj").empty());
  EXPECT_EQ(list.covering("lm_head"), "lm_head");
  EXPECT_EQ(list.covering("lm_head.x"), "");
  EXPECT_EQ(list.covering("model.layers.1.mlp.experts.7.gate_proj"), "re:model");
  const IgnoreList only({"re:.*mlp\\.(gate|up|gate_up|down)_proj.*"}, false);
  EXPECT_EQ(only.covering("model.layers.1.mlp.experts.7.gate_proj"), "");
}

TEST(IgnoreList, ContainersAndWildcards) {
  const IgnoreList list({"model.layers.*.self_attn", "model.layers.61*", "model.embed_tokens", "mtp.[01].mlp"}, true);
  EXPECT_FALSE(list.covering("model.layers.3.self_attn.q_proj").empty());
  EXPECT_FALSE(list.covering("model.layers.61.mlp.experts.0.up_proj").empty());
  EXPECT_FALSE(list.covering("model.embed_tokens").empty());
  EXPECT_FALSE(list.covering("mtp.1.mlp.up_proj").empty());
  EXPECT_EQ(list.covering("mtp.2.mlp.up_proj"), "");
  EXPECT_EQ(list.covering("model.layers.3.mlp.experts.0.up_proj"), "");
}

TEST(IgnoreList, ContainersHoldWholeComponents) {
  const IgnoreList list({"model.layers.1"}, true);
  EXPECT_FALSE(list.covering("model.layers.1.mlp").empty());
  EXPECT_EQ(list.covering("model.layers.10.mlp"), "");
}

TEST(IgnoreList, PartsOfNamesOnlyMayCover) {
  const IgnoreList list({"gate"}, true);
  EXPECT_EQ(list.covering("model.layers.0.block_sparse_moe.gate"), "");
  EXPECT_TRUE(list.may_cover("model.layers.0.block_sparse_moe.gate"));
  EXPECT_FALSE(list.may_cover("model.layers.0.self_attn.q_proj"));
}

TEST(IgnoreList, PartsOfNames) {
  const IgnoreList list({"gate", "experts.*", "mlp.down_proj", "mtp*"}, true);
  EXPECT_EQ(list.covering_part("model.layers.0.block_sparse_moe.gate"), "gate");
  EXPECT_EQ(list.covering_part("model.layers.0.mlp.experts.3.up_proj"), "experts.*");
  EXPECT_EQ(list.covering_part("model.layers.0.mlp.down_proj"), "mlp.down_proj");
  EXPECT_EQ(list.covering_part("mtp.layers.0.mlp.up_proj"), "mtp*");
  EXPECT_EQ(list.covering_part("model.layers.0.mlp.gate_proj"), "");
  EXPECT_EQ(list.covering_part("model.layers.0.mlp.shared_experts.up_proj"), "");
}

TEST(IgnoreList, OfSeveralWildcardsTheFirstIsNamed) {
  const IgnoreList list({"model.layers.1.*", "*.q_proj", "model.*"}, true);
  EXPECT_EQ(list.covering("model.layers.1.q_proj"), "model.layers.1.*");
  EXPECT_EQ(list.covering("model.layers.10.q_proj"), "*.q_proj");
  EXPECT_EQ(list.covering("model.layers.10.k_proj"), "model.*");
  EXPECT_EQ(list.covering("lm_head"), "");
}

TEST(IgnoreList, WildcardsOfDifferentBeginningsCostLittle) {
  std::vector<std::string> layers, tails;
  for (int i = 100; i < 1000; ++i) {
    layers.push_back("model.layers." + std::to_string(i) + ".self_attn*");
    tails.push_back("*" + std::to_string(i));
  }
  EXPECT_LT(IgnoreList(layers, true).cost(), 100U);
  EXPECT_EQ(IgnoreList(tails, true).cost(), 900U * 4);
}

TEST(IgnoreList, InvalidExpressionsAreTold) {
  const IgnoreList list({"re:(", "re:ok"}, false);
  ASSERT_EQ(list.invalid().size(), 1u);
  EXPECT_EQ(list.invalid()[0], "re:(");
  EXPECT_EQ(list.covering("ok"), "re:ok");
}

}  // namespace
}  // namespace nibble
