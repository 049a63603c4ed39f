// What a sequence keeps on the GPU besides the weights, by kind of attention:
//
//   grouped-query   keys and values of every token, (kv_heads · (head_dim + v_head_dim)) elements a layer; in sliding
//                   layers of the last `window` tokens only
//   latent (MLA)    kv_lora_rank + qk_rope_head_dim elements a token and layer, whatever the number of heads
//   compressed      one entry of head_dim for every `ratio` tokens, and the window's own
//   indexer         one key of the indexer's width a token (or for every few), where a layer keeps its own
//   sharing         layers that read what an earlier one keeps (LayerSpec::stores_kv) read it again
//   linear          no keys: a float32 state and the short convolution's last inputs, in 16 bits, of fixed size
//
// One copy, without the scales of 8-bit caches.
#pragma once

#include <cstdint>
#include <vector>

#include "nibble/models/model_spec.h"

namespace nibble {

struct KvLayer {
  // Entries that grow with the context.
  uint64_t elements = 0;
  uint64_t tokens_per_entry = 1;
  uint64_t chosen = 0;  // entries that attention reads at most, chosen by an indexer; 0: all
  // The indexer's keys.
  uint64_t index_elements = 0;
  uint64_t tokens_per_index_entry = 1;
  // The last tokens of a sliding window, 0: none; elements a token.
  uint64_t window = 0;
  uint64_t window_elements = 0;
  uint64_t state_bytes = 0;  // of fixed size, whatever the cache's type
  // False: an earlier layer keeps them; this one reads them again.
  bool stored = true, index_stored = true, window_stored = true;
  // Heads that tensor parallelism can share out; 1: every GPU holds and reads all of it. The indexer's keys belong to
  // no head: every GPU holds and reads all of them.
  uint64_t heads = 1;

  uint64_t bytes(uint64_t tokens, uint64_t element_bytes) const;       // of one sequence, all heads
  uint64_t read_bytes(uint64_t tokens, uint64_t element_bytes) const;  // by one new token
  // The same on one of `tp` GPUs that share out the heads.
  uint64_t rank_bytes(uint64_t tokens, uint64_t element_bytes, uint64_t tp) const;
  double rank_read_bytes(uint64_t tokens, uint64_t element_bytes, uint64_t tp) const;

 private:
  uint64_t index_bytes(uint64_t tokens, uint64_t element_bytes) const;
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
  // What one new token's attention reads of it: all of it, but for the entries that an indexer leaves out; states are
  // read and written.
  uint64_t read_bytes(uint64_t tokens, uint64_t element_bytes) const;
  // The last layer that keeps keys, null if none does: MTP layers attend as it does.
  const KvLayer* last_attention() const;
  const std::vector<KvLayer>& layers() const { return layers_; }

 private:
  std::vector<KvLayer> layers_;
};

}  // namespace nibble
