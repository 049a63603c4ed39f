// The tokens of one forward pass: of each sequence the next ones. A sequence may bring one token (decode) or thousands
// (prefill); both go through the same arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nibble/engine/kv/paged_cache.h"

namespace nibble {

struct BatchSequence {
  CachedSequence* cache = nullptr;
  uint64_t first = 0;     // row of its first token among the batch's
  uint64_t tokens = 0;    // in this pass
  uint64_t position = 0;  // of the first one: tokens that are in the cache

  uint64_t end() const { return position + tokens; }
};

struct Batch {
  std::vector<BatchSequence> sequences;
  uint64_t tokens = 0;

  void add(CachedSequence* cache, uint64_t count) {
    sequences.push_back({cache, tokens, count, cache->tokens()});
    tokens += count;
  }
};

}  // namespace nibble
