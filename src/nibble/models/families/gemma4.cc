// Gemma-4 with experts (26B-A4B), or dense: five layers that slide over 1024 tokens to one over everything, whose heads
// are twice as wide and whose values are its keys, without a matrix of their own; norms before and after each block;
// every layer has an MLP that all tokens pass (listed as shared expert) and, beside it, experts behind a softmax router
// with a scale per expert. Text under "model.language_model.", vision and audio beside it. For inventories and counts
// only.
//
// Names and shapes: transformers 5.24, gemma4, whose names are the release's; layer_scalar is a buffer there. Per-layer
// embeddings and layers that share keys, which the small dense members have, are refused.
#include <array>

#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

class Gemma4 final : public NamedFamily {
 public:
  Gemma4() : NamedFamily("gemma4", {"gemma4"}, {"Gemma4ForConditionalGeneration"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
  std::span<const std::string_view> other_parts() const override {
    static constexpr std::array<std::string_view, 4> kParts{"model.vision_tower.", "model.embed_vision.",
                                                            "model.audio_tower.", "model.embed_audio."};
    return kParts;
  }
};

// What transformers takes for granted where a file does not say.
constexpr uint64_t kDefaultGlobalHeadDim = 512, kDefaultPerLayerWidth = 256;

void refuse_unknown_parts(const ConfigReader& text) {
  const auto refuse = [&](const char* key, uint64_t value, const char* what) {
    if (value == 0) return;
    throw text.refuse(std::string(what) + " are not known to this family")
        .value(text.key_path(key), value)
        .way_out("use a release of nibble that knows them");
  };
  refuse("hidden_size_per_layer_input",
         text.count_or({"hidden_size_per_layer_input"}, kMaxDimension, kDefaultPerLayerWidth), "per-layer embeddings");
  refuse("num_kv_shared_layers", text.count_or({"num_kv_shared_layers"}, kMaxLayers, 0), "layers that share keys");
  refuse("use_double_wide_mlp", text.flag_or({"use_double_wide_mlp"}, false) ? 1 : 0, "MLPs of double width");
}

void parse_attention(const ConfigReader& text, ModelSpec* spec) {
  text.require_each({"head_dim", "num_key_value_heads"});
  parse_gqa(text, spec);
  spec->sliding = {spec->heads, spec->kv_heads, spec->head_dim, spec->head_dim};
  spec->qk_norm = QkNorm::kPerHead;
  spec->values_are_keys = text.flag_or({"attention_k_eq_v"}, false);
  spec->head_dim = text.size_or({"global_head_dim"}, kMaxDimension, kDefaultGlobalHeadDim);
  // As transformers, where the file does not say: those of sliding layers, and further down no experts.
  if (spec->values_are_keys)
    spec->kv_heads = text.size_or({"num_global_key_value_heads"}, kMaxDimension, spec->kv_heads);
  check_head_groups(text, "num_attention_heads", spec->heads, "num_global_key_value_heads", spec->kv_heads);
  if (!parse_sliding_layers(text, text.size({"sliding_window"}, kMaxDimension), spec))
    throw text.refuse("the configuration lacks `" + text.key_path("layer_types") + "`")
        .way_out("take config.json from the same release as the weights");
}

RopeSpec parse_kind_of_rope(const ConfigReader& parameters) {
  RopeSpec rope;
  rope.theta = parameters.positive({"rope_theta"});
  rope.partial_rotary_factor = parameters.positive_or({"partial_rotary_factor"}, 1);
  parse_rope_scaling(parameters, &rope);
  return rope;
}

ModelSpec Gemma4::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  const ConfigReader text = config.section("text_config");
  ModelSpec spec = parse_decoder(text, "model.language_model.");
  spec.model_type = config.text_or({"model_type"}, "gemma4");
  spec.tied_embeddings = text.flag_or({"tie_word_embeddings"}, true);  // as transformers
  refuse_unknown_parts(text);
  parse_attention(text, &spec);
  const ConfigReader rope = text.section("rope_parameters");
  spec.rope = parse_kind_of_rope(rope.section("full_attention"));
  spec.sliding_rope = parse_kind_of_rope(rope.section("sliding_attention"));
  spec.activation = Activation::kOther;  // gated GELU
  spec.dense_intermediate = text.size({"intermediate_size"}, kMaxDimension);
  if (!text.flag_or({"enable_moe_block"}, false)) return spec;
  parse_experts(text, &spec);
  spec.router = RouterKind::kOther;  // softmax over all, the k largest made to sum to 1, then a scale per expert
  spec.norm_topk_prob = true;
  spec.expert_intermediate = text.size({"moe_intermediate_size"}, kMaxDimension);
  spec.shared_experts = 1;
  spec.shared_intermediate = spec.dense_intermediate;
  spec.dense_intermediate = 0;
  spec.expert_naming.block = "";
  spec.expert_naming.native = Fusion::kGateThenUp;
  for (LayerSpec& layer : spec.layers) layer.mlp = MlpKind::kMoe;
  return spec;
}

void add_mlp(Inventory* out, MlpKind kind) {
  const ModelSpec& spec = out->spec();
  out->norm("pre_feedforward_layernorm", spec.hidden);
  if (kind == MlpKind::kDense) {
    add_gated_mlp(out, "mlp", Role::kDenseMlp, spec.dense_intermediate);
  } else {
    add_gated_mlp(out, "mlp", Role::kSharedExpert, spec.shared_intermediate);
    out->norm("post_feedforward_layernorm_1", spec.hidden);
    out->linear("router.proj", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
    out->add("router.scale", Role::kRouter, {spec.hidden});
    out->add("router.per_expert_scale", Role::kRouter, {spec.experts});
    out->norm("pre_feedforward_layernorm_2", spec.hidden);
    add_experts(out);
    out->norm("post_feedforward_layernorm_2", spec.hidden);
  }
  out->norm("post_feedforward_layernorm", spec.hidden);
}

void Gemma4::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    out.norm("input_layernorm", spec.hidden);
    add_gqa(&out, spec.attention_bias);
    out.norm("post_attention_layernorm", spec.hidden);
    add_mlp(&out, spec.layers[i].mlp);
    out.add("layer_scalar", Role::kNorm, {1});
  }
  out.leave_layers();
  out.norm("norm", spec.hidden);
  add_head(&out, "lm_head.weight");
}

}  // namespace

const Family& gemma4() {
  static const Gemma4 family;
  return family;
}

}  // namespace nibble::model_families
