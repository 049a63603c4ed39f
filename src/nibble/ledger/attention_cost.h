// Operations of attention itself, between its projections, for one token (a multiply-add is two).
//
//   grouped-query   2 · heads · (head_dim + v_head_dim) for every token read
//   latent (MLA)    decode works in the latent space (the projections of keys and values are absorbed): 2 · heads ·
//                   (2 · kv_lora_rank + qk_rope_head_dim); prefill expands: 2 · heads · (qk_head_dim + v_head_dim)
//   compressed      2 · heads · 2 · head_dim for every entry and every token of the window
//   indexer         2 · heads · width for every key it compares
//   linear          6 · heads · key_dim · value_dim: decay, update and read of the state
#pragma once

#include <cstdint>

#include "nibble/models/model_spec.h"

namespace nibble {

// Heads are shared out by tensor parallelism, the indexer is every GPU's own.
struct AttentionFlops {
  double heads = 0, indexer = 0;
  double sum() const { return heads + indexer; }
};

// One new token behind `tokens` others.
AttentionFlops decode_attention_flops(const ModelSpec& spec, uint64_t tokens);
// All of a prompt of `tokens` tokens, each reading those before it.
AttentionFlops prefill_attention_flops(const ModelSpec& spec, uint64_t tokens);

}  // namespace nibble
