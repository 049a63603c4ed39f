// What was measured of passes: of a whole model, or of one layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nibble/engine/kv/paged_cache.h"
#include "nibble/engine/work.h"

namespace nibble {

struct PassRow {
  std::string op;        // "prefill", "decode"
  uint64_t tokens = 0;   // of a run
  uint64_t context = 0;  // tokens in the cache before it
  uint64_t runs = 0;
  double seconds = 0;         // of a run
  std::vector<OpWork> steps;  // of a run, one after the other
};

// What attention does for a prompt of `tokens` tokens from nothing, and for one token behind `context` others. Keys and
// values are read once.
OpWork prefill_attention(const ModelSpec& spec, CacheElement cache, uint64_t tokens);
OpWork decode_attention(const ModelSpec& spec, CacheElement cache, uint64_t context);

// Error unless `tokens` fit into the model's positions.
void check_positions(const ModelSpec& spec, uint64_t tokens);

}  // namespace nibble
