// Kimi-K3: three layers of linear attention (KDA) to one of gated multi-head latent attention without rotation, latent
// MoE (the routed experts work in a narrower space, between two projections that stay in 16 bits), attention residuals
// over blocks of layers. Text under "language_model.", a vision tower and projector beside it. For inventories and
// casts only.
//
// Names: FORMATS.md §4.4, §10, and public loaders of the release that list its headers. One peculiarity of the files:
// A_log has one entry per width of a head (128), of which only the first, one per head (96), mean something.
#include <array>

#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

class KimiK3 final : public NamedFamily {
 public:
  KimiK3() : NamedFamily("kimi_k3", {"kimi_k3"}, {"KimiK3ForConditionalGeneration"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
  std::span<const std::string_view> other_parts() const override {
    static constexpr std::array<std::string_view, 2> kParts{"vision_tower.", "mm_projector."};
    return kParts;
  }
};

// linear_attn_config lists layers from 1; each must be named once.
void parse_layer_kinds(const ConfigReader& linear, ModelSpec* spec) {
  for (LayerSpec& layer : spec->layers) layer.attention = AttentionKind::kOther;
  const auto assign = [&](const char* key, AttentionKind kind) {
    for (const uint64_t number : linear.counts(key, 0, kMaxLayers).value_or(std::vector<uint64_t>{})) {
      if (number == 0 || number > spec->layers.size() || spec->layers[number - 1].attention != AttentionKind::kOther)
        throw linear.refuse("a list of layers names one that is not there, or twice")
            .value("key", linear.key_path(key))
            .value("layer", number)
            .value("num_hidden_layers", spec->layers.size())
            .way_out("take config.json from the same release as the weights");
      spec->layers[number - 1].attention = kind;
    }
  };
  assign("kda_layers", AttentionKind::kLinear);
  assign("full_attn_layers", AttentionKind::kMla);
  for (size_t i = 0; i < spec->layers.size(); ++i) {
    if (spec->layers[i].attention == AttentionKind::kOther)
      throw linear.refuse("neither kda_layers nor full_attn_layers names a layer")
          .value("layer", i + 1)
          .way_out("take config.json from the same release as the weights");
  }
}

ModelSpec KimiK3::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  const ConfigReader text = config.section("text_config");
  ModelSpec spec = parse_decoder(text, "language_model.model.");
  spec.model_type = config.text_or({"model_type"}, "kimi_k3");
  text.require_each({"q_lora_rank", "mla_use_output_gate", "routed_expert_hidden_size", "attn_res_block_size"});
  parse_mla(text, &spec);
  const ConfigReader linear = text.section("linear_attn_config");
  const uint64_t heads = linear.size({"num_heads"}, kMaxDimension);
  const uint64_t width = linear.size({"head_dim"}, kMaxDimension);
  spec.linear = {heads, heads, width, width, linear.size({"short_conv_kernel_size"}, 1024)};
  parse_layer_kinds(linear, &spec);
  spec.output_gate = text.flag_or({"mla_use_output_gate"}, false);
  parse_experts(text, &spec);
  parse_deepseek_router(text, &spec);
  parse_dense_first(text, &spec);
  parse_mtp(text, &spec);
  spec.latent = text.count_or({"routed_expert_hidden_size"}, kMaxDimension, 0);
  spec.residual_blocks = text.count_or({"attn_res_block_size"}, kMaxLayers, 0);
  spec.activation = Activation::kOther;  // "situ"
  spec.expert_naming = {"block_sparse_moe", "w1", "w3", "w2", Fusion::kNone, false};
  return spec;
}

void add_kda(Inventory* out) {
  const ModelSpec& spec = out->spec();
  const LinearAttentionSpec& linear = spec.linear;
  const uint64_t width = linear.heads * linear.key_dim;
  out->linear("self_attn.q_proj", Role::kAttention, width, spec.hidden, Projection::kQ);
  out->linear("self_attn.k_proj", Role::kAttention, width, spec.hidden, Projection::kK);
  out->linear("self_attn.v_proj", Role::kAttention, width, spec.hidden, Projection::kV);
  for (const char* conv : {"self_attn.q_conv1d.weight", "self_attn.k_conv1d.weight", "self_attn.v_conv1d.weight"})
    out->add(conv, Role::kAttention, {width, 1, linear.conv_kernel});
  out->linear("self_attn.f_a_proj", Role::kAttention, linear.key_dim, spec.hidden, Projection::kOther);
  out->linear("self_attn.f_b_proj", Role::kAttention, width, linear.key_dim, Projection::kHeads);
  out->add("self_attn.A_log", Role::kAttention, {linear.key_dim});
  out->add("self_attn.dt_bias", Role::kAttention, {width});
  out->linear("self_attn.b_proj", Role::kAttention, linear.heads, spec.hidden, Projection::kHeads);
  out->linear("self_attn.g_proj", Role::kAttention, width, spec.hidden, Projection::kHeads);
  out->norm("self_attn.o_norm", linear.key_dim);
  out->linear("self_attn.o_proj", Role::kAttention, spec.hidden, width, Projection::kO);
}

void add_latent_moe(Inventory* out) {
  const ModelSpec& spec = out->spec();
  const std::string moe = "block_sparse_moe";
  out->linear(moe + ".gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
  out->add(moe + ".gate.e_score_correction_bias", Role::kRouter, {spec.experts});
  if (spec.latent != 0) {
    out->linear(moe + ".routed_expert_down_proj", Role::kLatent, spec.latent, spec.hidden, Projection::kOther);
    out->norm(moe + ".routed_expert_norm", spec.latent);
    out->linear(moe + ".routed_expert_up_proj", Role::kLatent, spec.hidden, spec.latent, Projection::kOther);
  }
  add_experts(out);
  if (spec.shared_intermediate != 0)
    add_gated_mlp(out, moe + ".shared_experts", Role::kSharedExpert, spec.shared_intermediate);
}

// The query that attends over earlier blocks of the residual stream, and the norm of what it reads.
void add_residual_query(Inventory* out, const std::string& name) {
  if (out->spec().residual_blocks == 0) return;
  out->norm(name + "_norm", out->spec().hidden);
  out->add(name + "_proj.weight", Role::kNorm, {1, out->spec().hidden});
}

void KimiK3::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    add_residual_query(&out, "self_attention_res");
    out.norm("input_layernorm", spec.hidden);
    if (spec.layers[i].attention == AttentionKind::kLinear) {
      add_kda(&out);
    } else {
      add_mla(&out);
      if (spec.output_gate)
        out.linear("self_attn.g_proj", Role::kAttention, spec.heads * spec.v_head_dim, spec.hidden, Projection::kHeads);
    }
    add_residual_query(&out, "mlp_res");
    out.norm("post_attention_layernorm", spec.hidden);
    if (spec.layers[i].mlp == MlpKind::kDense) {
      add_gated_mlp(&out, "mlp", Role::kDenseMlp, spec.dense_intermediate);
    } else {
      add_latent_moe(&out);
    }
  }
  out.leave_layers();
  add_residual_query(&out, "output_attn_res");
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& kimi_k3() {
  static const KimiK3 family;
  return family;
}

}  // namespace nibble::model_families
