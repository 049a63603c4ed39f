// Keys and values that no model computed: a context of any length at once, for measuring what attention over it costs.
#pragma once

#include <cstdint>

#include "nibble/base/thread_pool.h"
#include "nibble/engine/kv/paged_cache.h"

namespace nibble {

// Fills `sequence`, which holds no tokens, as if `tokens` had gone through `layers` layers: standard normal keys and
// values.
void fill_randomly(uint64_t layers, uint64_t tokens, ThreadPool* pool, CachedSequence* sequence);

}  // namespace nibble
