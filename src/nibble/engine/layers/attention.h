// Softmax attention over cached keys and values: every query head of every token of a batch, for one layer.
//
// Pages are taken in ascending order, all tokens of a page at once (kernels/cpu/vector): a token's result depends on
// the keys before it alone, not on the batch or the cut.
#pragma once

#include <cstdint>
#include <vector>

#include "nibble/base/thread_pool.h"
#include "nibble/engine/batch.h"

namespace nibble {

struct AttentionRequest {
  const Batch* batch = nullptr;
  uint64_t layer = 0;
  uint64_t heads = 0;            // query heads; those of one key head are neighbours
  const float* q = nullptr;      // (T, heads, key_dim), times the softmax's scale
  const float* sinks = nullptr;  // (heads): score of a key without value; null: none
  float* out = nullptr;          // (T, heads, value_dim)
};

// The tokens' own keys and values are in the cache already.
void attend(const AttentionRequest& request, ThreadPool* pool);

}  // namespace nibble
