// Pieces of inventories that many families share: a family's inventory() is a list of these. Shapes are (N, K).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nibble/models/family.h"

namespace nibble {

// Hands one parameter after the other to the visitor, under the prefix of where it stands. Inside MTP layers every
// parameter is optional and has role kMtp.
class Inventory {
 public:
  Inventory(const ModelSpec& spec, const ParamVisitor& visit);

  const ModelSpec& spec() const { return *spec_; }
  int32_t layer() const { return layer_; }
  // What follows belongs to `layer` (MTP layers from spec.layers.size() on), or to the model itself again.
  void enter_layer(int32_t layer);
  void leave_layers();

  // `name` follows the prefix and is complete ("self_attn.sinks").
  void add(std::string_view name, Role role, std::vector<uint64_t> shape, Projection projection = Projection::kNone);
  // MODULE.weight, (N, K); with `bias` also MODULE.bias, (N).
  void linear(std::string_view module, Role role, uint64_t rows, uint64_t cols, Projection projection,
              bool bias = false);
  void norm(std::string_view module, uint64_t width);
  // Not a parameter of its own (ParamSpec::counted): index tables, copies.
  void table(std::string_view name, Role role, std::vector<uint64_t> shape);
  void copy(std::string_view name, std::vector<uint64_t> shape);
  // A whole ParamSpec, name included.
  void emit(ParamSpec&& param);

 private:
  const ModelSpec* spec_;
  const ParamVisitor* visit_;
  std::string prefix_;
  int32_t layer_ = -1;
  bool mtp_ = false;
};

// embed_tokens; norm; lm_head (under the prefix up to "model."; optional and not counted when tied).
void add_embedding(Inventory* out);
void add_final_norm_and_head(Inventory* out);
// The head alone, under a whole name.
void add_head(Inventory* out, std::string name);

// self_attn.{q,k,v,o}_proj in the layer's shape with spec.attention_bias (o's as `o_bias` says), norms of q and k as
// spec.qk_norm.
void add_gqa(Inventory* out, bool o_bias);
// self_attn.{q_a_proj, q_a_layernorm, q_b_proj | q_proj}, kv_a_proj_with_mqa, kv_a_layernorm, kv_b_proj, o_proj.
// `module` and `output` are "self_attn" and "o_proj" unless a family has other names.
void add_mla(Inventory* out, const std::string& module = "self_attn", const std::string& output = "o_proj");

// MODULE.{gate,up,down}_proj of width `intermediate`.
void add_gated_mlp(Inventory* out, const std::string& module, Role role, uint64_t intermediate, bool bias = false);
// The routed experts of the current layer in the family's native form.
void add_experts(Inventory* out);
// mlp.gate with its correction bias, experts, shared experts.
void add_deepseek_moe(Inventory* out);
// enorm, hnorm, eh_proj, shared_head and the copies of embedding and head; the rest of the layer is the caller's.
void add_deepseek_mtp_glue(Inventory* out);

}  // namespace nibble
