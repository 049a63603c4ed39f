// Step-3.7-Flash and Step-3.5-Flash: grouped-query attention with norms over each head and a gate of one number a head;
// three layers that slide over 512 tokens, with more query heads, to one over everything; sigmoid router, a shared
// expert, first layers dense; experts stacked one projection each. Step-3.7's text lies beside a vision model and its
// projector. For inventories and counts only: some layers clamp their MLP (swiglu_limits).
//
// Names and shapes: transformers 5.24, step3p7, by its mapping from the release's names. The release's configuration
// has the text model under text_config and keys of its own (moe_num_experts, attention_other_setting …); files adapted
// by other tools are flat. MTP layers count on behind the last with a dense MLP, but what they hold beside attention
// and MLP is not known here: they are not listed.
#include <array>
#include <charconv>

#include "nibble/base/strings.h"
#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

class Step3p7 final : public NamedFamily {
 public:
  Step3p7()
      : NamedFamily("step3p7", {"step3p7", "step3p5"}, {"Step3p7ForConditionalGeneration", "Step3p5ForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
  std::span<const std::string_view> other_parts() const override {
    static constexpr std::array<std::string_view, 2> kParts{"vision_model.", "vit_large_projector."};
    return kParts;
  }
};

// Lists with an entry a layer may go on for the MTP layers.
void check_length(const ConfigReader& text, const char* key, size_t entries, const ModelSpec& spec) {
  if (entries == spec.layers.size() || entries == spec.layers.size() + spec.unlisted_mtp_layers) return;
  throw text.refuse("`" + text.key_path(key) + "` should have one entry a layer")
      .value("entries", entries)
      .value("num_hidden_layers", spec.layers.size())
      .value("num_nextn_predict_layers", spec.unlisted_mtp_layers)
      .way_out("take config.json from the same release as the weights");
}

void parse_layer_kinds(const ConfigReader& text, ModelSpec* spec) {
  const auto kinds = text.texts("layer_types", 0);
  if (!kinds)
    throw text.refuse("the configuration lacks `" + text.key_path("layer_types") + "`")
        .way_out("take config.json from the same release as the weights");
  check_length(text, "layer_types", kinds->size(), *spec);
  const uint64_t window = text.size({"sliding_window"}, kMaxDimension);
  for (size_t i = 0; i < spec->layers.size(); ++i) {
    const bool slides = (*kinds)[i] == "sliding_attention";
    if (!slides && (*kinds)[i] != "full_attention")
      throw text.refuse("an entry of `layer_types` is unknown to this family")
          .value("layer", i)
          .value("entry", (*kinds)[i])
          .way_out("use a release of nibble that knows this kind of layer");
    spec->layers[i].sliding_window = slides ? window : 0;
  }
}

// Other numbers of heads in sliding layers; those that are not given are the full layers', as in transformers.
void parse_sliding_shape(const ConfigReader& text, ModelSpec* spec) {
  AttentionShape& sliding = spec->sliding;
  sliding = {spec->heads, spec->kv_heads, spec->head_dim, spec->head_dim};
  if (const auto other = text.maybe_section("attention_other_setting")) {
    sliding.heads = other->size_or({"num_attention_heads"}, kMaxDimension, sliding.heads);
    sliding.kv_heads = other->size_or({"num_attention_groups"}, kMaxDimension, sliding.kv_heads);
    sliding.head_dim = other->size_or({"head_dim"}, kMaxDimension, sliding.head_dim);
    sliding.v_head_dim = sliding.head_dim;
  }
  sliding.heads = text.size_or({"num_sliding_attention_heads"}, kMaxDimension, sliding.heads);
  check_head_groups(text, "num_sliding_attention_heads", sliding.heads, "num_key_value_heads", sliding.kv_heads);
}

// moe_layers_enum: "3,4,5", numbers of layers, MTP's included.
void parse_moe_enum(const ConfigReader& text, ModelSpec* spec) {
  const std::string listed = text.text_or({"moe_layers_enum"}, "");
  const size_t limit = spec->layers.size() + spec->unlisted_mtp_layers;
  for (const std::string_view part : split(listed, ',')) {
    size_t layer = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), layer);
    if (error != std::errc() || end != part.data() + part.size() || layer >= limit)
      throw text.refuse("`" + text.key_path("moe_layers_enum") + "` should list layers, separated by commas")
          .value("entry", std::string(part.substr(0, 80)))
          .value("num_hidden_layers", spec->layers.size())
          .way_out("take config.json from the same release as the weights");
    if (layer < spec->layers.size()) spec->layers[layer].mlp = MlpKind::kMoe;
  }
  spec->dense_intermediate = text.size({"intermediate_size"}, kMaxDimension);
}

// One value for all layers or one a layer; every layer of a kind must have the same.
double value_of_kind(const ConfigReader& text, const char* key, double fallback, bool sliding, const ModelSpec& spec) {
  const auto values = text.positives(key);
  if (!values) return fallback;
  if (values->size() == 1) return values->front();
  check_length(text, key, values->size(), spec);
  double found = 0;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    if ((spec.layers[i].sliding_window != 0) != sliding) continue;
    if (found != 0 && (*values)[i] != found)
      throw text.refuse("`" + text.key_path(key) + "` differs between layers of one kind")
          .value("layer", i)
          .value("value", (*values)[i])
          .value("before", found)
          .way_out("use a release of nibble that knows such layers");
    found = (*values)[i];
  }
  return found != 0 ? found : fallback;
}

void parse_rotation(const ConfigReader& text, ModelSpec* spec) {
  constexpr double kTheta = 10000;  // as transformers
  RopeSpec sliding;
  sliding.theta = value_of_kind(text, "rope_theta", kTheta, true, *spec);
  sliding.partial_rotary_factor = value_of_kind(text, "partial_rotary_factors", 1, true, *spec);
  spec->rope.theta = value_of_kind(text, "rope_theta", kTheta, false, *spec);
  spec->rope.partial_rotary_factor = value_of_kind(text, "partial_rotary_factors", 1, false, *spec);
  if (const auto scaling = text.maybe_section("rope_scaling")) parse_rope_scaling(*scaling, &spec->rope);
  if (!(sliding == spec->rope)) spec->sliding_rope = sliding;
}

void parse_moe(const ConfigReader& text, ModelSpec* spec) {
  parse_experts(text, spec);
  const std::string scores = text.text_or({"scoring_func", "moe_router_activation"}, "sigmoid");
  if (scores != "sigmoid" || !text.flag_or({"use_moe_router_bias"}, true))
    throw text.refuse("a router that this family does not have")
        .value(text.key_path("scoring_func"), scores)
        .value(text.key_path("use_moe_router_bias"), text.flag_or({"use_moe_router_bias"}, true) ? "true" : "false")
        .way_out("use a release of nibble that knows this router");
  spec->router = RouterKind::kSigmoidBias;
  spec->norm_topk_prob = text.flag_or({"norm_expert_weight"}, true);
  spec->routed_scaling_factor = text.positive_or({"moe_router_scaling_factor"}, 1);
  spec->expert_intermediate = text.size({"moe_intermediate_size"}, kMaxDimension);
  spec->shared_experts = 1;
  spec->shared_intermediate = text.size({"share_expert_dim", "share_expert_dims"}, kMaxDimension);
  spec->expert_naming.block = "moe";
  spec->expert_naming.native = Fusion::kStackedExperts;
  spec->expert_naming.stacks = {"", "moe.gate_proj.weight", "moe.up_proj.weight", "moe.down_proj.weight"};
  if (text.has("moe_layers_enum")) {
    parse_moe_enum(text, spec);
  } else if (text.has("first_k_dense_replace") || text.has("mlp_layer_types")) {
    parse_dense_first(text, spec);
  } else {
    throw text.refuse("the configuration lacks `" + text.key_path("moe_layers_enum") + "` or `mlp_layer_types`")
        .way_out("take config.json from the same release as the weights");
  }
}

ModelSpec Step3p7::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  const ConfigReader text = config.maybe_section("text_config").value_or(config);
  ModelSpec spec = parse_decoder(text, "model.");
  spec.model_type = config.text_or({"model_type"}, "step3p7");
  spec.unlisted_mtp_layers = text.count_or({"num_nextn_predict_layers"}, kMaxLayers, 0);
  parse_layer_kinds(text, &spec);
  text.require_one({"num_key_value_heads", "num_attention_groups"});
  text.require_each({"head_dim"});
  parse_gqa(text, &spec);
  parse_sliding_shape(text, &spec);
  parse_rotation(text, &spec);
  spec.qk_norm = QkNorm::kPerHead;
  spec.output_gate = text.flag_or({"use_head_wise_attn_gate"}, true);  // as transformers
  parse_moe(text, &spec);
  return spec;
}

void Step3p7::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    out.norm("input_layernorm", spec.hidden);
    add_gqa(&out, spec.attention_bias);
    if (spec.output_gate)
      out.linear("self_attn.g_proj", Role::kAttention, spec.attention_shape(spec.layers[i]).heads, spec.hidden,
                 Projection::kHeads);
    out.norm("post_attention_layernorm", spec.hidden);
    if (spec.layers[i].mlp == MlpKind::kDense) {
      add_gated_mlp(&out, "mlp", Role::kDenseMlp, spec.dense_intermediate);
      continue;
    }
    out.linear("moe.gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
    out.add("moe.router_bias", Role::kRouter, {spec.experts});
    add_experts(&out);
    add_gated_mlp(&out, "share_expert", Role::kSharedExpert, spec.shared_intermediate);
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& step3p7() {
  static const Step3p7 family;
  return family;
}

}  // namespace nibble::model_families
