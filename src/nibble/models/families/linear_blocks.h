// What families with linear attention share: which layers are linear, and the tensors of Gated DeltaNet (Qwen3-Next and
// after) and of Kimi Delta Attention (KDA).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble {

// How a configuration says which layers are linear: layer_types, or that every n-th is not.
struct LinearPattern {
  std::vector<std::string_view> other_kinds;  // entries besides "linear_attention" and "full_attention"
  const char* interval_key = "full_attention_interval";
  uint64_t default_interval = 4;  // transformers'
};
// Linear layers become kLinear, the others `full`. An entry of layer_types that is unknown is an Error.
void parse_linear_layers(const ConfigReader& config, const LinearPattern& pattern, AttentionKind full, ModelSpec* spec);
// parse_rope; where nothing says which part of a head is rotated, a quarter (transformers' default of these families).
RopeSpec parse_quarter_rope(const ConfigReader& config);
// linear_num_{key,value}_heads, linear_{key,value}_head_dim, linear_conv_kernel_dim.
void parse_gated_delta_net(const ConfigReader& config, ModelSpec* spec);

// linear_attn.*: inputs as in_proj_qkvz and in_proj_ba (`fused`, Qwen3-Next) or as in_proj_{qkv,z,b,a}.
void add_gated_delta_net(Inventory* out, bool fused);
// add_gqa with queries twice as wide: the second half of each head gates its output.
void add_gated_gqa(Inventory* out);
// Projections of queries, keys and values, a short convolution for each, MODULE.{A_log, dt_bias, b_proj, o_norm,
// o_proj}. Decay and output gate are the caller's: their matrices differ.
void add_kda_core(Inventory* out, const std::string& module);

// mlp.gate, experts, one shared expert behind a gate of its own.
void add_qwen_moe(Inventory* out);
// Its keys; all layers are MoE.
void parse_qwen_moe(const ConfigReader& config, ModelSpec* spec);

}  // namespace nibble
