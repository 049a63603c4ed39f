#include "nibble/models/families/common_blocks.h"

#include <utility>

#include "nibble/base/strings.h"
#include "nibble/models/expert_forms.h"

namespace nibble {

Inventory::Inventory(const ModelSpec& spec, const ParamVisitor& visit)
    : spec_(&spec), visit_(&visit), prefix_(spec.prefix) {}

void Inventory::enter_layer(int32_t layer) {
  layer_ = layer;
  mtp_ = layer >= static_cast<int32_t>(spec_->layers.size());
  prefix_ = spec_->layer_prefix(layer);
}

void Inventory::leave_layers() {
  layer_ = -1;
  mtp_ = false;
  prefix_ = spec_->prefix;
}

void Inventory::emit(ParamSpec&& param) {
  param.layer = layer_;
  if (mtp_) {
    param.role = Role::kMtp;
    param.optional = true;
  }
  (*visit_)(std::move(param));
}

void Inventory::add(std::string_view name, Role role, std::vector<uint64_t> shape, Projection projection) {
  ParamSpec param;
  param.name.reserve(prefix_.size() + name.size());
  param.name.append(prefix_).append(name);
  param.role = role;
  param.projection = projection;
  param.shape = std::move(shape);
  emit(std::move(param));
}

void Inventory::linear(std::string_view module, Role role, uint64_t rows, uint64_t cols, Projection projection,
                       bool bias) {
  add(std::string(module) + ".weight", role, {rows, cols}, projection);
  if (bias) add(std::string(module) + ".bias", role == Role::kRouter ? role : Role::kBias, {rows}, projection);
}

void Inventory::norm(std::string_view module, uint64_t width) {
  add(std::string(module) + ".weight", Role::kNorm, {width});
}

void Inventory::table(std::string_view name, Role role, std::vector<uint64_t> shape) {
  ParamSpec param;
  param.name = prefix_ + std::string(name);
  param.role = role;
  param.shape = std::move(shape);
  param.counted = false;
  emit(std::move(param));
}

void Inventory::copy(std::string_view name, std::vector<uint64_t> shape) {
  ParamSpec param;
  param.name = prefix_ + std::string(name);
  param.role = Role::kHead;
  param.shape = std::move(shape);
  param.optional = true;
  param.counted = false;
  emit(std::move(param));
}

void add_embedding(Inventory* out) {
  out->add("embed_tokens.weight", Role::kEmbedding, {out->spec().vocabulary, out->spec().hidden});
}

void add_final_norm_and_head(Inventory* out) {
  const std::string& prefix = out->spec().prefix;
  out->norm("norm", out->spec().hidden);
  // "language_model.model." has its head beside the model; "model.language_model." at the top.
  const bool beside = ends_with(prefix, ".model.");
  const bool inside = starts_with(prefix, "model.");
  add_head(out, (beside ? prefix.substr(0, prefix.size() - 6) : inside ? "" : prefix) + "lm_head.weight");
}

void add_head(Inventory* out, std::string name) {
  const ModelSpec& spec = out->spec();
  ParamSpec head;
  head.name = std::move(name);
  head.role = Role::kHead;
  head.shape = {spec.vocabulary, spec.hidden};
  head.optional = spec.tied_embeddings;
  head.counted = !spec.tied_embeddings;
  out->emit(std::move(head));
}

void add_gqa(Inventory* out, bool o_bias) {
  const ModelSpec& spec = out->spec();
  const auto index = static_cast<size_t>(out->layer());
  const LayerSpec layer = index < spec.layers.size() ? spec.layers[index] : LayerSpec{};
  const AttentionShape shape = spec.attention_shape(layer);
  const uint64_t q = shape.heads * shape.head_dim;
  const uint64_t kv = shape.kv_heads * shape.head_dim;
  const bool bias = spec.attention_bias;
  out->linear("self_attn.q_proj", Role::kAttention, q, spec.hidden, Projection::kQ, bias);
  out->linear("self_attn.k_proj", Role::kAttention, kv, spec.hidden, Projection::kK, bias);
  if (!spec.values_are_keys || layer.sliding_window != 0)
    out->linear("self_attn.v_proj", Role::kAttention, shape.kv_heads * shape.v_head_dim, spec.hidden, Projection::kV,
                bias);
  out->linear("self_attn.o_proj", Role::kAttention, spec.hidden, shape.heads * shape.v_head_dim, Projection::kO,
              o_bias);
  if (spec.qk_norm == QkNorm::kNone) return;
  const bool per_head = spec.qk_norm == QkNorm::kPerHead;
  out->norm("self_attn.q_norm", per_head ? shape.head_dim : q);
  out->norm("self_attn.k_norm", per_head ? shape.head_dim : kv);
}

void add_mla(Inventory* out, const std::string& module, const std::string& output) {
  const ModelSpec& spec = out->spec();
  const uint64_t q = spec.heads * (spec.qk_nope_head_dim + spec.qk_rope_head_dim);
  const bool bias = spec.attention_bias;
  if (spec.q_lora_rank == 0) {
    out->linear(module + ".q_proj", Role::kAttention, q, spec.hidden, Projection::kQ);
  } else {
    out->linear(module + ".q_a_proj", Role::kAttention, spec.q_lora_rank, spec.hidden, Projection::kQa, bias);
    out->norm(module + ".q_a_layernorm", spec.q_lora_rank);
    out->linear(module + ".q_b_proj", Role::kAttention, q, spec.q_lora_rank, Projection::kQb);
  }
  out->linear(module + ".kv_a_proj_with_mqa", Role::kAttention, spec.kv_lora_rank + spec.qk_rope_head_dim, spec.hidden,
              Projection::kKva, bias);
  out->norm(module + ".kv_a_layernorm", spec.kv_lora_rank);
  out->linear(module + ".kv_b_proj", Role::kAttention, spec.heads * (spec.qk_nope_head_dim + spec.v_head_dim),
              spec.kv_lora_rank, Projection::kKvb);
  out->linear(module + "." + output, Role::kAttention, spec.hidden, spec.heads * spec.v_head_dim, Projection::kO, bias);
}

void add_gated_mlp(Inventory* out, const std::string& module, Role role, uint64_t intermediate, bool bias) {
  const uint64_t hidden = out->spec().hidden;
  out->linear(module + ".gate_proj", role, intermediate, hidden, Projection::kGate, bias);
  out->linear(module + ".up_proj", role, intermediate, hidden, Projection::kUp, bias);
  out->linear(module + ".down_proj", role, hidden, intermediate, Projection::kDown, bias);
}

void add_experts(Inventory* out) {
  visit_experts(out->spec(), out->layer(), native_form(out->spec()),
                [out](ParamSpec&& param) { out->emit(std::move(param)); });
}

void add_deepseek_moe(Inventory* out) {
  const ModelSpec& spec = out->spec();
  out->linear("mlp.gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
  out->add("mlp.gate.e_score_correction_bias", Role::kRouter, {spec.experts});
  add_experts(out);
  if (spec.shared_intermediate != 0)
    add_gated_mlp(out, "mlp.shared_experts", Role::kSharedExpert, spec.shared_intermediate);
}

void add_deepseek_mtp_glue(Inventory* out) {
  const ModelSpec& spec = out->spec();
  out->norm("enorm", spec.hidden);
  out->norm("hnorm", spec.hidden);
  out->linear("eh_proj", Role::kMtp, spec.hidden, 2 * spec.hidden, Projection::kNone);
  out->norm("shared_head.norm", spec.hidden);
  out->copy("shared_head.head.weight", {spec.vocabulary, spec.hidden});
  out->copy("embed_tokens.weight", {spec.vocabulary, spec.hidden});
}

}  // namespace nibble
