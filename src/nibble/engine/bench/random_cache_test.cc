#include "nibble/engine/bench/random_cache.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nibble {
namespace {

ModelSpec two_layers() {
  ModelSpec spec;
  spec.heads = 8;
  spec.kv_heads = 2;
  spec.head_dim = 32;
  spec.layers.resize(2);
  spec.layers[1].sliding_window = 64;
  return spec;
}

TEST(RandomCache, is_as_long_as_asked_and_of_ordinary_size) {
  const ModelSpec spec = two_layers();
  ThreadPool pool(2);
  CachedSequence sequence(spec, CacheElement::kBF16);
  fill_randomly(2, 500, &pool, &sequence);
  EXPECT_EQ(sequence.tokens(), 500U);
  EXPECT_EQ(sequence.layer(0).bytes(), 8 * sequence.layer(0).layout().page_bytes());
  EXPECT_LT(sequence.layer(1).bytes(), sequence.layer(0).bytes());  // what the window left behind is gone
  std::vector<float> keys(32 * kPageTokens), values(32 * kPageTokens);
  double squares = 0;
  for (uint64_t page = 0; page < 7; ++page) {
    for (uint64_t head = 0; head < 2; ++head) {
      sequence.layer(0).load(page, head, keys.data(), values.data());
      for (const float key : keys) squares += static_cast<double>(key) * static_cast<double>(key);
      for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
    }
  }
  EXPECT_NEAR(squares / (7 * 2 * 2 * 32 * kPageTokens), 1, 0.1);
}

TEST(RandomCache, tokens_differ) {
  const ModelSpec spec = two_layers();
  ThreadPool pool(1);
  CachedSequence sequence(spec, CacheElement::kF32);
  fill_randomly(2, 64, &pool, &sequence);
  std::vector<float> keys(32 * kPageTokens), values(32 * kPageTokens);
  sequence.layer(0).load(0, 0, keys.data(), values.data());
  uint64_t same = 0;
  for (uint64_t token = 1; token < 64; ++token) {
    if (keys[token] == keys[token - 1]) ++same;
  }
  EXPECT_LT(same, 3U);
}

}  // namespace
}  // namespace nibble
