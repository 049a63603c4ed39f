#include "nibble/ledger/sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace nibble {
namespace {

using ::testing::ElementsAre;

ModelSpec layers_of(size_t count) {
  ModelSpec spec;
  spec.layers.resize(count);
  return spec;
}

WeightItem matrix(Role role, Projection projection, int32_t layer, std::vector<uint64_t> shape, uint64_t bytes) {
  WeightItem item;
  item.param.role = role;
  item.param.projection = projection;
  item.param.layer = layer;
  item.param.fusion = shape.size() == 3 ? Fusion::kStackedExperts : Fusion::kNone;
  item.param.shape = std::move(shape);
  item.bytes = bytes;
  return item;
}

uint64_t on_rank(const ModelSpec& spec, const WeightItem& item, const Layout& layout) {
  return rank_bytes(WeightGroups(spec, {item}).groups().at(0), layout);
}

TEST(Sharding, stages_share_layers_evenly_and_leave_none_out) {
  for (const uint64_t layers : {1U, 7U, 61U, 93U}) {
    for (uint64_t stages = 1; stages <= layers; ++stages) {
      uint64_t next = 0;
      for (uint64_t s = 0; s < stages; ++s) {
        const auto [first, last] = stage_layers(layers, stages, s);
        EXPECT_EQ(first, next);
        EXPECT_GE(last - first, layers / stages);
        EXPECT_LE(last - first, layers / stages + 1);
        next = last;
      }
      EXPECT_EQ(next, layers);
    }
  }
}

TEST(Sharding, parts_of_whole_blocks) {
  EXPECT_THAT(legal_parts(640, 128), ElementsAre(1, 5));
  EXPECT_THAT(legal_parts(320, 128), ElementsAre(1));
  EXPECT_THAT(legal_parts(12, 1), ElementsAre(1, 2, 3, 4, 6, 12));
  EXPECT_THAT(legal_parts(100, 128), ElementsAre(1));
  for (uint64_t width = 0; width <= 300; ++width) {
    for (const uint64_t block : {1U, 2U, 3U, 16U}) {
      std::vector<uint64_t> legal{1};
      for (uint64_t parts = 2; parts <= width; ++parts) {
        if (width % parts == 0 && width / parts % block == 0) legal.push_back(parts);
      }
      legal.resize(std::min<size_t>(legal.size(), 16));
      EXPECT_EQ(legal_parts(width, block), legal) << width << " " << block;
    }
  }
}

TEST(Sharding, experts_go_over_ep_and_the_rest_of_the_stage) {
  const ModelSpec spec = layers_of(1);
  const WeightItem down = matrix(Role::kRoutedExpert, Projection::kDown, 0, {64, 512, 256}, 64 * 1000);
  EXPECT_EQ(on_rank(spec, down, {8, 1, 1, 1}), 64U * 125);  // each expert cut in 8
  EXPECT_EQ(on_rank(spec, down, {8, 8, 1, 1}), 8U * 1000);  // 8 whole experts
  EXPECT_EQ(on_rank(spec, down, {8, 2, 1, 1}), 32U * 250);  // 32 experts, each cut in 4
  EXPECT_EQ(on_rank(spec, down, {1, 8, 1, 8}), 8U * 1000);
  EXPECT_EQ(on_rank(spec, down, {1, 1, 1, 8}), 64U * 1000);  // copies
  EXPECT_EQ(on_rank(spec, down, {1, 3, 1, 3}), 22U * 1000);  // 22 of 64: rounded up
}

TEST(Sharding, heads_are_cut_bottlenecks_are_copied) {
  ModelSpec spec = layers_of(1);
  spec.kv_heads = 4;
  spec.head_dim = 128;
  const Layout tp8{8, 1, 1, 1};
  EXPECT_EQ(on_rank(spec, matrix(Role::kAttention, Projection::kQ, 0, {1024, 64}, 800), tp8), 100U);
  EXPECT_EQ(on_rank(spec, matrix(Role::kAttention, Projection::kK, 0, {512, 64}, 400), tp8), 100U);  // 4 parts, twice
  EXPECT_EQ(on_rank(spec, matrix(Role::kAttention, Projection::kQa, 0, {96, 64}, 96), tp8), 96U);
  EXPECT_EQ(on_rank(spec, matrix(Role::kRouter, Projection::kNone, 0, {64, 64}, 64), tp8), 64U);
  EXPECT_EQ(on_rank(spec, matrix(Role::kHead, Projection::kNone, -1, {1000, 64}, 1000), tp8), 125U);
}

// Ling-1T: 64 query heads and 8 key/value heads of 128 in one matrix.
TEST(Sharding, keys_and_values_beside_queries_are_copied_too) {
  ModelSpec spec = layers_of(2);
  spec.heads = 64;
  spec.kv_heads = 8;
  spec.head_dim = 128;
  const auto rows_on_rank = [&](uint64_t tp, int32_t layer, uint64_t rows) {
    const WeightItem fused = matrix(Role::kAttention, Projection::kQkv, layer, {rows, 512}, rows * 1024);
    return on_rank(spec, fused, {tp, 1, 1, 1}) / 1024;
  };
  constexpr uint64_t kRows = (64 + 8 + 8) * 128;
  EXPECT_EQ(rows_on_rank(8, 0, kRows), (8U + 1 + 1) * 128);
  EXPECT_EQ(rows_on_rank(16, 0, kRows), (4U + 1 + 1) * 128);
  EXPECT_EQ(rows_on_rank(64, 0, kRows), (1U + 1 + 1) * 128);
  EXPECT_EQ(rows_on_rank(64, 2, kRows), (1U + 1 + 1) * 128);  // an MTP layer
  // Sliding layers with heads of their own, values narrower than keys.
  spec.layers[1].sliding_window = 128;
  spec.sliding = {32, 4, 192, 128};
  EXPECT_EQ(rows_on_rank(8, 1, 36 * 192 + 4 * 128), 4U * 192 + 192 + 128);
}

TEST(Sharding, keys_of_linear_attention_are_its_own) {
  ModelSpec spec = layers_of(1);
  spec.layers[0].attention = AttentionKind::kLinear;
  spec.linear = {32, 32, 64, 64, 4};
  spec.kv_heads = 2;  // of other layers
  const Layout tp8{8, 1, 1, 1};
  EXPECT_EQ(on_rank(spec, matrix(Role::kAttention, Projection::kK, 0, {2048, 64}, 2048), tp8), 256U);
  // A single key head lies on every GPU, with its queries; 32 heads of values and of gates are dealt out.
  spec.linear.key_heads = 1;
  const uint64_t rows = 2 * 64 + 2 * 32 * 64;
  for (const Projection projection : {Projection::kQkv, Projection::kHeads})
    EXPECT_EQ(on_rank(spec, matrix(Role::kAttention, projection, 0, {rows, 64}, rows), tp8), 2U * 64 + 2 * 4 * 64);
  EXPECT_EQ(on_rank(spec, matrix(Role::kAttention, Projection::kHeads, 0, {2048, 64}, 2048), tp8), 256U);
}

TEST(Sharding, groups_count_every_weight_once) {
  const ModelSpec spec = layers_of(10);
  std::vector<WeightItem> items{matrix(Role::kEmbedding, Projection::kNone, -1, {8, 8}, 1),
                                matrix(Role::kHead, Projection::kNone, -1, {8, 8}, 1),
                                matrix(Role::kMtp, Projection::kO, 10, {8, 8}, 1)};
  for (int32_t layer = 0; layer < 10; ++layer)
    items.push_back(matrix(Role::kAttention, Projection::kO, layer, {8, layer < 3 ? 16U : 8U}, 1));
  const WeightGroups weights(spec, items);
  EXPECT_EQ(weights.groups().size(), 5U);
  for (const uint64_t stages : {1U, 3U, 10U}) {
    uint64_t sum = 0;
    for (const WeightGroup& group : weights.groups()) {
      for (uint64_t s = 0; s < stages; ++s) sum += group.count(s, stages);
    }
    EXPECT_EQ(sum, items.size());
  }
  EXPECT_EQ(weights.groups()[0].count(0, 2), 1U);  // the embedding is in front
  EXPECT_EQ(weights.groups()[1].count(0, 2), 0U);  // the head at the end
}

// A tied head that the file stores, and an MTP layer's own embedding and head.
TEST(Sharding, copies_of_embedding_and_head_are_no_gpus) {
  std::vector<WeightItem> items{matrix(Role::kEmbedding, Projection::kNone, -1, {1000, 64}, 1000),
                                matrix(Role::kMtp, Projection::kO, 1, {64, 64}, 64)};
  for (WeightItem copy : {matrix(Role::kHead, Projection::kNone, -1, {1000, 64}, 1000),
                          matrix(Role::kMtp, Projection::kNone, 1, {1000, 64}, 1000)}) {
    copy.param.counted = false;
    items.push_back(copy);
  }
  EXPECT_TRUE(ties_head(items));
  const WeightGroups weights(layers_of(1), items);
  EXPECT_TRUE(weights.tied());
  ASSERT_EQ(weights.groups().size(), 2U);
  EXPECT_EQ(weights.groups()[1].item.bytes, 64U);
  // Tables of a layer are none: they are read where they lie.
  WeightItem table = matrix(Role::kEmbedding, Projection::kNone, 0, {5000, 16}, 5000);
  table.param.counted = false;
  EXPECT_EQ(WeightGroups(layers_of(1), {table}).groups().size(), 1U);
  items.push_back(matrix(Role::kHead, Projection::kNone, -1, {1000, 64}, 1000));
  EXPECT_FALSE(WeightGroups(layers_of(1), items).tied());
}

}  // namespace
}  // namespace nibble
