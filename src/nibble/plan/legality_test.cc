// Layouts that must be refused before a byte is read, with the arithmetic and the ways out.
#include "nibble/plan/legality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nibble {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

ModelSpec moe_spec(uint64_t experts) {
  ModelSpec spec;
  spec.layers.resize(4);
  for (LayerSpec& layer : spec.layers) layer.mlp = MlpKind::kMoe;
  spec.heads = 40;
  spec.kv_heads = 40;
  spec.head_dim = 128;
  spec.experts = experts;
  spec.experts_per_token = 4;
  return spec;
}

WeightItem item(Role role, Projection projection, uint64_t experts, uint64_t rows, uint64_t cols, const char* format) {
  WeightItem item;
  item.param.role = role;
  item.param.projection = projection;
  item.param.layer = 0;
  item.param.shape = experts == 0 ? std::vector{rows, cols} : std::vector{experts, rows, cols};
  if (experts != 0) item.param.fusion = Fusion::kStackedExperts;
  item.format = parse_format(format);
  item.bytes = 1;
  return item;
}

// Down projection of experts of width `inputs`, in groups of 128 along it.
std::vector<LayoutRefusal> cut_down(uint64_t experts, uint64_t inputs, const Layout& layout) {
  const std::vector<WeightItem> items{item(Role::kRoutedExpert, Projection::kDown, experts, 4096, inputs, "int4-g128")};
  return LayoutRules(moe_spec(experts), WeightGroups(moe_spec(experts), items)).check(layout);
}

TEST(Legality, C43_a_cut_group_is_refused_with_its_arithmetic) {
  const auto refusals = cut_down(64, 640, {2, 1, 1, 1});
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].reason, HasSubstr("640"));
  EXPECT_THAT(refusals[0].values, Contains(Pair("width", "640")));
  EXPECT_THAT(refusals[0].values, Contains(Pair("parts", "2")));
  EXPECT_THAT(refusals[0].values, Contains(Pair("local", "320")));
  EXPECT_THAT(refusals[0].values, Contains(Pair("block", "128")));
  EXPECT_THAT(refusals[0].values, Contains(Pair("remainder", "64")));
  EXPECT_THAT(refusals[0].ways_out, Contains(HasSubstr("1, 5")));
  EXPECT_THAT(refusals[0].ways_out, Contains(HasSubstr("EP 1, 2")));
  EXPECT_THAT(refusals[0].ways_out, Not(Contains(HasSubstr("the heads allow"))));  // 40 heads: 5 is legal
  EXPECT_THAT(cut_down(64, 640, {5, 1, 1, 1}), IsEmpty());
  EXPECT_THAT(cut_down(64, 640, {2, 2, 1, 1}), IsEmpty());  // EP 2 keeps them whole
}

// Five parts leave the blocks of an expert whole, and 8 heads not.
TEST(Legality, C43_ways_out_say_what_the_heads_allow) {
  ModelSpec spec = moe_spec(64);
  spec.heads = spec.kv_heads = 8;
  const std::vector<WeightItem> items{item(Role::kRoutedExpert, Projection::kDown, 64, 4096, 640, "int4-g128")};
  const auto refusals = LayoutRules(spec, WeightGroups(spec, items)).check({2, 1, 1, 1});
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].ways_out, Contains(HasSubstr("1, 5; the heads allow TP 1 of these")));
}

TEST(Legality, C45_two_and_a_half_blocks_allow_expert_parallelism_only) {
  const std::vector<WeightItem> items{item(Role::kRoutedExpert, Projection::kGate, 512, 320, 4096, "fp8-block"),
                                      item(Role::kRoutedExpert, Projection::kUp, 512, 320, 4096, "fp8-block"),
                                      item(Role::kRoutedExpert, Projection::kDown, 512, 4096, 320, "fp8-block")};
  const LayoutRules rules(moe_spec(512), WeightGroups(moe_spec(512), items));
  for (const uint64_t tp : {2U, 4U, 5U, 8U, 10U, 20U}) EXPECT_FALSE(rules.check({tp, 1, 1, 1}).empty()) << tp;
  EXPECT_THAT(rules.check({8, 8, 1, 1}), IsEmpty());
  EXPECT_THAT(rules.check({1, 8, 1, 8}), IsEmpty());
}

TEST(Legality, C47_four_and_a_half_blocks) {
  for (const auto& [width, tp, local] : {std::tuple{18432U, 32U, 576U}, {1536U, 8U, 192U}, {768U, 4U, 192U}}) {
    ModelSpec spec = moe_spec(64);
    spec.heads = spec.kv_heads = 64;
    const std::vector<WeightItem> items{item(Role::kDenseMlp, Projection::kGate, 0, width, 4096, "fp8-block")};
    const auto refusals = LayoutRules(spec, WeightGroups(spec, items)).check({tp, 1, 1, 1});
    ASSERT_THAT(refusals, SizeIs(1)) << width;
    EXPECT_THAT(refusals[0].values, Contains(Pair("local", std::to_string(local))));
    EXPECT_THAT(refusals[0].values, Contains(Pair("remainder", "64")));
    EXPECT_THAT(refusals[0].ways_out, Contains(HasSubstr("pad")));
    EXPECT_THAT(refusals[0].ways_out, Contains(HasSubstr("uneven")));
  }
}

TEST(Legality, heads_experts_layers_and_stages_must_divide) {
  const LayoutRules rules(moe_spec(60), WeightGroups(moe_spec(60), {}));
  EXPECT_THAT(rules.check({3, 1, 1, 1})[0].reason, HasSubstr("40 attention heads cannot be divided by TP 3"));
  EXPECT_THAT(rules.check({8, 8, 1, 1})[0].reason, HasSubstr("60 experts cannot be divided by EP 8: remainder 4"));
  EXPECT_THAT(rules.check({8, 8, 1, 1})[0].ways_out, Contains(HasSubstr("pad to 64 experts")));
  EXPECT_THAT(rules.check({1, 1, 5, 1})[0].reason, HasSubstr("4 layers cannot fill PP 5"));
  EXPECT_THAT(rules.check({4, 3, 1, 1})[0].reason, HasSubstr("EP 3 does not divide the 4 GPUs of a stage"));
  EXPECT_THAT(rules.check({4, 4, 2, 1}), IsEmpty());
}

TEST(Legality, key_value_heads_are_copied_where_there_are_too_few) {
  ModelSpec spec = moe_spec(64);
  spec.heads = 64;
  spec.kv_heads = 4;
  const std::vector<WeightItem> items{item(Role::kAttention, Projection::kK, 0, 512, 4096, "fp8-block")};
  const LayoutRules rules(spec, WeightGroups(spec, items));
  EXPECT_THAT(rules.check({8, 1, 1, 1}), IsEmpty());  // 4 different parts of 128 rows
  spec.kv_heads = 6;
  EXPECT_FALSE(LayoutRules(spec, WeightGroups(spec, items)).check({4, 1, 1, 1}).empty());
}

// Queries, keys and values in one matrix of blocks of 128 rows: what counts is what a GPU gets of each.
TEST(Legality, each_part_of_a_fused_matrix_is_cut_by_itself) {
  ModelSpec spec = moe_spec(64);
  spec.heads = 16;
  spec.kv_heads = 2;
  spec.head_dim = 128;
  const auto check = [&](uint64_t tp) {
    const uint64_t rows = (spec.heads + 2 * spec.kv_heads) * spec.head_dim;
    const std::vector<WeightItem> items{item(Role::kAttention, Projection::kQkv, 0, rows, 4096, "fp8-block")};
    return LayoutRules(spec, WeightGroups(spec, items)).check({tp, 1, 1, 1});
  };
  // One query head each and a copy of a key head: three blocks, though 2,560 rows over 16 are one and a quarter.
  EXPECT_THAT(check(16), IsEmpty());
  // 512 rows of queries over 2 are two blocks, but 128 of keys half a block; 768 together would be three.
  spec.heads = 8;
  spec.head_dim = 64;
  const auto refusals = check(2);
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].values, Contains(Pair("width", "128")));
  EXPECT_THAT(refusals[0].values, Contains(Pair("local", "64")));
}

// Of 64 heads of linear attention every four share one of 16 keys.
TEST(Legality, key_heads_of_linear_attention_must_divide) {
  ModelSpec spec = moe_spec(64);
  spec.heads = spec.kv_heads = 64;
  spec.layers[1].attention = AttentionKind::kLinear;
  spec.linear = {64, 16, 128, 128, 4};
  EXPECT_THAT(LayoutRules(spec, WeightGroups(spec, {})).check({16, 1, 1, 1}), IsEmpty());
  const auto refusals = LayoutRules(spec, WeightGroups(spec, {})).check({32, 1, 1, 1});
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].reason, HasSubstr("16 key heads of linear attention cannot be divided by TP 32"));
  spec.linear.key_heads = 1;  // a single one is copied
  EXPECT_THAT(LayoutRules(spec, WeightGroups(spec, {})).check({32, 1, 1, 1}), IsEmpty());
}

}  // namespace
}  // namespace nibble
