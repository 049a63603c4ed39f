// What DeepSeek-V4.1 shares with DeepSeek-V4.
#pragma once

#include <string>

#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble {

// Everything but family, prefix, layers, MTP and the sizes that parse_decoder read.
void parse_deepseek_v4_text(const ConfigReader& config, ModelSpec* spec);

// attn.{wq_a, q_norm, wq_b, wkv, kv_norm, wo_a, wo_b, attn_sink} behind attn_norm.
void add_deepseek_v4_attention(Inventory* out);
// ffn.experts and ffn.shared_experts.
void add_deepseek_v4_experts(Inventory* out);
// The mixing of residual streams before `block`, "hc_attn" or "hc_ffn": pre, post and combination weights at once.
void add_deepseek_v4_hyper_connection(Inventory* out, const std::string& block);

}  // namespace nibble
