#include "nibble/ledger/kv_cache.h"

#include <gtest/gtest.h>

#include "nibble/base/error.h"

namespace nibble {
namespace {

ModelSpec alternating() {
  ModelSpec spec;
  spec.layers.resize(36);
  for (size_t i = 0; i < spec.layers.size(); i += 2) spec.layers[i].sliding_window = 128;
  spec.heads = 64;
  spec.kv_heads = 8;
  spec.head_dim = 64;
  return spec;
}

TEST(KvCache, C97_sliding_layers_keep_their_window) {
  const KvCache cache(alternating());
  EXPECT_EQ(cache.bytes(131072, 2), 4'836'556'800U);
  EXPECT_EQ(cache.bytes_per_token(2), 18 * 2 * 8 * 64 * 2);
  EXPECT_EQ(cache.bytes_per_sequence(2), 18U * 128 * 2 * 8 * 64 * 2);
  // A budget is used up by the tokens that fit into it.
  EXPECT_EQ(cache.bytes(131072, 2),
            static_cast<uint64_t>(131072 * cache.bytes_per_token(2)) + cache.bytes_per_sequence(2));
  EXPECT_EQ(cache.bytes(100, 2), 36U * 100 * 2 * 8 * 64 * 2);  // windows not yet full
}

TEST(KvCache, an_indexer_reads_what_it_chose_and_all_of_its_own_keys) {
  ModelSpec spec;
  spec.layers.resize(1);
  spec.layers[0] = {.attention = AttentionKind::kMla, .indexer = true};
  spec.kv_lora_rank = 512;
  spec.qk_rope_head_dim = 64;
  spec.indexer = {64, 128, 2048};
  const KvCache cache(spec);
  EXPECT_EQ(cache.bytes(100'000, 1), 100'000U * (576 + 128));
  EXPECT_EQ(cache.read_bytes(100'000, 1), 2048U * 576 + 100'000 * 128);
  EXPECT_EQ(cache.read_bytes(1000, 1), 1000U * (576 + 128));
}

// Four heads over four GPUs; the indexer's keys are no head's.
TEST(KvCache, every_gpu_holds_and_reads_all_of_the_indexers_keys) {
  ModelSpec spec;
  spec.layers.resize(1);
  spec.layers[0].indexer = true;
  spec.heads = 64;
  spec.kv_heads = 4;
  spec.head_dim = 128;
  spec.indexer = {4, 128, 2048};
  const KvCache cache(spec);
  const KvLayer& layer = cache.layers()[0];
  EXPECT_EQ(layer.bytes(10'000, 2), 10'000U * (2 * 4 * 128 + 128) * 2);
  EXPECT_EQ(layer.rank_bytes(10'000, 2, 4), 10'000U * (2 * 128 + 128) * 2);
  EXPECT_EQ(layer.rank_bytes(10'000, 2, 8), 10'000U * (2 * 128 + 128) * 2);
  EXPECT_EQ(layer.rank_read_bytes(10'000, 2, 4), 2048 * 2 * 128 * 2 + 10'000 * 128 * 2);
}

TEST(KvCache, a_state_does_not_grow) {
  ModelSpec spec;
  spec.layers.resize(1);
  spec.layers[0].attention = AttentionKind::kLinear;
  spec.linear = {32, 16, 128, 128, 4};
  const KvCache cache(spec);
  const uint64_t state = 32U * 128 * 128 * 4 + (2 * 16 * 128 + 32 * 128) * 3 * 2;
  EXPECT_EQ(cache.bytes(1, 2), state);
  EXPECT_EQ(cache.bytes(1'000'000, 1), state);
  EXPECT_EQ(cache.read_bytes(1, 2), 2 * state);
}

TEST(KvCache, layers_that_share_keys_read_and_do_not_keep) {
  ModelSpec spec = alternating();
  spec.layers[35].stores_kv = false;
  const KvCache cache(spec);
  EXPECT_EQ(cache.bytes_per_token(2), 17 * 2 * 8 * 64 * 2);
  EXPECT_EQ(cache.read_bytes(10, 2), 36U * 10 * 2 * 8 * 64 * 2);
}

TEST(KvCache, unknown_attention_is_refused_by_its_layer) {
  ModelSpec spec = alternating();
  spec.layers[7].attention = AttentionKind::kOther;
  try {
    const KvCache cache(spec);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.values()[0].second, "7");
  }
}

}  // namespace
}  // namespace nibble
