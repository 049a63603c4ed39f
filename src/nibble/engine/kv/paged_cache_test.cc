#include "nibble/engine/kv/paged_cache.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nibble/base/rng.h"
#include "nibble/ledger/kv_cache.h"

namespace nibble {
namespace {

CacheLayout layout_of(CacheElement element, bool latent) {
  CacheLayout layout;
  layout.element = element;
  layout.latent = latent;
  layout.heads = latent ? 1 : 2;
  layout.key_dim = latent ? 24 : 16;
  layout.value_dim = 16;
  return layout;
}

float number(uint64_t seed, uint64_t token, uint64_t index) {
  return static_cast<float>(random_normal(seed, token * 1000 + index));
}

// A token's keys and values of one head, which number() gave, are read back but for a share of each.
void expect_read_back(const CachedLayer& layer, uint64_t token, uint64_t head, double share) {
  const CacheLayout& layout = layer.layout();
  std::vector<float> keys(layout.key_dim * kPageTokens), values(layout.value_dim * kPageTokens);
  layer.load(token / kPageTokens, head, keys.data(), values.data());
  const uint64_t slot = token % kPageTokens;
  const double least = share > 0.01 ? 0.01 : 0;
  for (uint64_t d = 0; d < layout.key_dim; ++d) {
    const float wanted = number(1, token, head * layout.key_dim + d);
    ASSERT_NEAR(keys[d * kPageTokens + slot], wanted, share * std::abs(wanted) + least);
  }
  for (uint64_t d = 0; d < layout.value_dim; ++d) {
    const float wanted = layout.latent ? number(1, token, d) : number(2, token, head * layout.value_dim + d);
    ASSERT_NEAR(values[slot * layout.value_dim + d], wanted, share * std::abs(wanted) + least);
  }
}

// What was stored is read back: whole in float32, within half a step of the last bit in 16 and 8 bits.
TEST(CachedLayer, gives_back_what_it_stored) {
  for (const bool latent : {false, true}) {
    for (const auto& [element, share] : {std::pair{CacheElement::kF32, 0.0}, std::pair{CacheElement::kBF16, 0x1p-8},
                                         std::pair{CacheElement::kE4M3, 0x1p-4}}) {
      CachedLayer layer(layout_of(element, latent));
      const CacheLayout& layout = layer.layout();
      layer.reserve(0, 70);
      for (uint64_t token = 0; token < 70; ++token) {
        std::vector<float> keys(layout.heads * layout.key_dim), values(layout.heads * layout.value_dim);
        for (uint64_t i = 0; i < keys.size(); ++i) keys[i] = number(1, token, i);
        for (uint64_t i = 0; i < values.size(); ++i) values[i] = number(2, token, i);
        layer.store(token, keys.data(), values.data());
      }
      EXPECT_EQ(layer.bytes(), 2 * layout.page_bytes());
      for (uint64_t token = 0; token < 70; ++token) {
        for (uint64_t head = 0; head < layout.heads; ++head) {
          expect_read_back(layer, token, head, share);
        }
      }
    }
  }
}

// What attention makes of a page as it lies: one query and one head, its weights those of the values.
std::vector<float> attention_over(const CacheLayout& layout, AttentionPage page) {
  std::vector<float> q(layout.key_dim), out(layout.value_dim);
  for (uint64_t d = 0; d < q.size(); ++d) q[d] = number(3, 0, d);
  float largest = -1e30F, sum = 0;
  page.end = 50;
  vector_loops().attend({1, layout.key_dim, layout.value_dim, q.data(), &largest, &sum, out.data()}, page);
  return out;
}

TEST(CachedLayer, a_view_gives_the_bits_of_what_is_loaded) {
  for (const CacheElement element : {CacheElement::kF32, CacheElement::kBF16, CacheElement::kE4M3}) {
    CachedLayer layer(layout_of(element, false));
    const CacheLayout& layout = layer.layout();
    layer.reserve(0, 50);
    for (uint64_t token = 0; token < 50; ++token) {
      std::vector<float> keys(layout.heads * layout.key_dim), values(layout.heads * layout.value_dim);
      for (uint64_t i = 0; i < keys.size(); ++i) keys[i] = number(1, token, i);
      for (uint64_t i = 0; i < values.size(); ++i) values[i] = number(2, token, i);
      layer.store(token, keys.data(), values.data());
    }
    std::vector<float> keys(layout.key_dim * kPageTokens), values(layout.value_dim * kPageTokens);
    for (uint64_t head = 0; head < layout.heads; ++head) {
      layer.load(0, head, keys.data(), values.data());
      const AttentionPage loaded{.keys = keys.data(), .values = values.data()};
      EXPECT_EQ(attention_over(layout, layer.view(0, head)), attention_over(layout, loaded));
    }
  }
}

TEST(CachedLayer, a_window_gives_up_what_it_left_behind) {
  CacheLayout layout = layout_of(CacheElement::kBF16, false);
  layout.window = 128;
  CachedLayer layer(layout);
  const std::vector<float> zeros(32);
  uint64_t most = 0;
  for (uint64_t token = 0; token < 1000; ++token) {
    layer.reserve(token, token + 1);
    layer.store(token, zeros.data(), zeros.data());
    most = std::max(most, layer.bytes() / layout.page_bytes());
  }
  EXPECT_EQ(most, 4U);  // the window in up to three pages, and one more
  layer.truncate(990);
  EXPECT_LE(layer.bytes() / layout.page_bytes(), 4U);
}

TEST(CachedLayer, a_fixed_scale_clamps) {
  CacheLayout layout = layout_of(CacheElement::kE4M3, false);
  layout.fixed = {{1.0F}, {1.0F}};
  CachedLayer layer(layout);
  layer.reserve(0, 1);
  const std::vector<float> large(32, 1000.0F);
  layer.store(0, large.data(), large.data());
  std::vector<float> keys(layout.key_dim * kPageTokens), values(layout.value_dim * kPageTokens);
  layer.load(0, 0, keys.data(), values.data());
  EXPECT_EQ(keys[0], 448.0F);
}

// The ledger's bytes a token are the pages', but for scales.
TEST(CachedLayer, bytes_are_the_ledgers) {
  ModelSpec spec;
  spec.heads = 64;
  spec.kv_heads = 8;
  spec.head_dim = 64;
  spec.layers.resize(2);
  CachedSequence sequence(spec, CacheElement::kBF16);
  for (uint64_t i = 0; i < 2; ++i) sequence.layer(i).reserve(0, 640);
  EXPECT_EQ(static_cast<double>(sequence.bytes()), 640 * KvCache(spec).bytes_per_token(2));
}

}  // namespace
}  // namespace nibble
