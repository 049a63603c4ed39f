// The closed forms against a walk over every token.
#include "nibble/ledger/attention_cost.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nibble {
namespace {

ModelSpec gqa(uint64_t window) {
  ModelSpec spec;
  spec.layers.resize(1);
  spec.layers[0].sliding_window = window;
  spec.heads = 16;
  spec.kv_heads = 2;
  spec.head_dim = 64;
  return spec;
}

TEST(AttentionCost, grouped_query_reads_what_is_there) {
  const double a_token = 2.0 * 16 * (64 + 64);
  EXPECT_EQ(decode_attention_flops(gqa(0), 1000).sum(), 1000 * a_token);
  EXPECT_EQ(decode_attention_flops(gqa(128), 1000).sum(), 128 * a_token);
  EXPECT_EQ(decode_attention_flops(gqa(128), 100).sum(), 100 * a_token);
  for (const uint64_t window : {0U, 128U}) {
    double walked = 0;
    for (uint64_t n = 1; n <= 1000; ++n) walked += decode_attention_flops(gqa(window), n).sum();
    EXPECT_DOUBLE_EQ(prefill_attention_flops(gqa(window), 1000).sum(), walked) << window;
  }
}

TEST(AttentionCost, latent_decode_works_in_the_latent_space_and_prefill_does_not) {
  ModelSpec spec;
  spec.layers.resize(2);
  for (LayerSpec& layer : spec.layers) layer.attention = AttentionKind::kMla;
  spec.heads = 128;
  spec.kv_lora_rank = 512;
  spec.qk_nope_head_dim = 128;
  spec.qk_rope_head_dim = 64;
  spec.v_head_dim = 128;
  EXPECT_EQ(decode_attention_flops(spec, 10).sum(), 2.0 * 10 * 2 * 128 * (2 * 512 + 64));
  EXPECT_EQ(prefill_attention_flops(spec, 10).sum(), 2.0 * 55 * 2 * 128 * (128 + 64 + 128));
}

TEST(AttentionCost, an_indexer_compares_all_and_attention_reads_the_chosen) {
  ModelSpec spec;
  spec.layers.resize(1);
  spec.layers[0].attention = AttentionKind::kMla;
  spec.layers[0].indexer = true;
  spec.heads = 4;
  spec.kv_lora_rank = 32;
  spec.qk_nope_head_dim = spec.v_head_dim = 16;
  spec.indexer = {2, 8, 100};
  const double entry = 2.0 * 4 * 64;
  const double key = 2.0 * 2 * 8;
  EXPECT_EQ(decode_attention_flops(spec, 5000).sum(), 100 * entry + 5000 * key);
  double walked = 0;
  for (uint64_t n = 1; n <= 400; ++n)
    walked += static_cast<double>(std::min<uint64_t>(n, 100)) * 2 * 4 * 32 + static_cast<double>(n) * key;
  EXPECT_DOUBLE_EQ(prefill_attention_flops(spec, 400).sum(), walked);
}

TEST(AttentionCost, a_state_costs_the_same_for_every_token) {
  ModelSpec spec;
  spec.layers.resize(3);
  for (LayerSpec& layer : spec.layers) layer.attention = AttentionKind::kLinear;
  spec.linear = {32, 16, 128, 64, 4};
  EXPECT_EQ(decode_attention_flops(spec, 7).sum(), 3.0 * 6 * 32 * 128 * 64);
  EXPECT_EQ(prefill_attention_flops(spec, 7).sum(), 7 * decode_attention_flops(spec, 1'000'000).sum());
}

}  // namespace
}  // namespace nibble
