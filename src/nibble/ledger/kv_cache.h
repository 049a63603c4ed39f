// What a sequence keeps on the GPU besides the weights, by kind of attention:
//
//   grouped-query   keys and values of every token, (kv_heads · (head_dim + v_head_dim)) elements a layer; in sliding
//                   layers of the last `window` tokens only
//   latent (MLA)    kv_lora_rank + qk_rope_head_dim elements a token and layer, whatever the number of heads
//   compressed      one entry of head_dim for every `ratio` tokens, and the window's own
//   indexer         one key of the indexer's width a token (or for every few), where a layer keeps its own
//   linear          no keys: a float32 state and the short convolution's last inputs, in 16 bits, of fixed size
//
// One copy, without the scales of FP8 caches. Layers that read another layer's keys keep nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "nibble/models/model_spec.h"

namespace nibble {

struct KvLayer {
  uint64_t elements = 0;          // of one entry that grows with the context
  uint64_t tokens_per_entry = 1;  // one entry for so many tokens
  uint64_t index_elements = 0;    // of one of the indexer's entries
  uint64_t tokens_per_index_entry = 1;
  uint64_t window = 0;           // tokens, 0: none
  uint64_t window_elements = 0;  // a token within the window
  uint64_t state_bytes = 0;      // fixed, whatever the cache's type
};

class KvCache {
 public:
  // Error naming the layer if its kind of attention is unknown.
  explicit KvCache(const ModelSpec& spec);

  // `element_bytes`: 2 for 16 bits, 1 for 8.
  double bytes_per_token(uint64_t element_bytes) const;       // of what grows
  uint64_t bytes_per_sequence(uint64_t element_bytes) const;  // of what does not, at its full size
  // Of one sequence after `tokens` tokens: windows that are not full yet hold less.
  uint64_t bytes(uint64_t tokens, uint64_t element_bytes) const;
  const std::vector<KvLayer>& layers() const { return layers_; }

 private:
  std::vector<KvLayer> layers_;
};

}  // namespace nibble
