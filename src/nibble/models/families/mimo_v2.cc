// MiMo-V2 (V2-Flash, V2.5, V2.6): grouped-query attention with values narrower than keys; most layers slide over 128
// tokens, with heads of their own and sinks; a third of each head rotated, DeepSeek's router without a shared expert.
// Newer releases hold queries, keys and values as one matrix. For inventories and counts only: values are scaled.
//
// Names and shapes: transformers 5.24, mimo_v2_flash, but for the sinks, which releases call attention_sink_bias; the
// fused matrix: public loaders that check its rows (q, k, v: 14848 or 13568 in V2.6-Flash). Releases hold MTP layers
// under "model.mtp.layers.", whose shapes are not known here: they are not listed.
#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

class MimoV2 final : public NamedFamily {
 public:
  MimoV2() : NamedFamily("mimo_v2", {"mimo_v2", "mimo_v2_flash"}, {"MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
};

// hybrid_layer_pattern: 1 slides; or layer_types.
void parse_layer_kinds(const ConfigReader& config, ModelSpec* spec) {
  const uint64_t window = config.size({"sliding_window", "sliding_window_size"}, kMaxDimension);
  if (const auto pattern = config.counts("hybrid_layer_pattern", spec->layers.size(), 1)) {
    for (size_t i = 0; i < pattern->size(); ++i) spec->layers[i].sliding_window = (*pattern)[i] != 0 ? window : 0;
  } else if (!parse_sliding_layers(config, window, spec)) {
    throw config.refuse("the configuration lacks `hybrid_layer_pattern` or `layer_types`")
        .way_out("take config.json from the same release as the weights");
  }
}

// Sizes of one kind of layer do not follow from those of the other: transformers doubles the key/value heads of sliding
// ones, which is not so in all releases.
void parse_shapes(const ConfigReader& config, ModelSpec* spec) {
  config.require_each({"num_key_value_heads", "head_dim", "add_swa_attention_sink_bias"});
  parse_gqa(config, spec);
  spec->v_head_dim = config.size({"v_head_dim"}, kMaxDimension);
  AttentionShape& sliding = spec->sliding;
  sliding.heads = config.size({"swa_num_attention_heads"}, kMaxDimension);
  sliding.kv_heads = config.size({"swa_num_key_value_heads"}, kMaxDimension);
  sliding.head_dim = config.size({"swa_head_dim"}, kMaxDimension);
  sliding.v_head_dim = config.size({"swa_v_head_dim"}, kMaxDimension);
  check_head_groups(config, "swa_num_attention_heads", sliding.heads, "swa_num_key_value_heads", sliding.kv_heads);
  const std::string layout = config.text_or({"attention_projection_layout"}, "");
  if (!layout.empty() && layout != "fused_qkv")
    throw config.refuse("a layout of the attention's matrices that is unknown")
        .value("attention_projection_layout", layout)
        .way_out("use a release of nibble that knows this layout");
  spec->fused_qkv = layout == "fused_qkv";
  spec->sinks = config.flag_or({"add_full_attention_sink_bias"}, false);
  spec->sliding_sinks = config.flag_or({"add_swa_attention_sink_bias"}, false);
  if (spec->sinks && !spec->sliding_sinks)
    throw config.refuse("sinks in the layers without a window alone")
        .value("add_full_attention_sink_bias", "true")
        .value("add_swa_attention_sink_bias", "false")
        .way_out("take config.json from the same release as the weights");
}

ModelSpec MimoV2::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "model.");
  parse_layer_kinds(config, &spec);
  parse_shapes(config, &spec);
  spec.rope = parse_rope(config);
  spec.sliding_rope = spec.rope;
  spec.sliding_rope->theta = config.positive_or({"swa_rope_theta"}, spec.rope.theta);
  parse_experts(config, &spec);
  parse_deepseek_router(config, &spec);
  if (!parse_moe_list(config, "intermediate_size", &spec))
    throw config.refuse("the configuration lacks `moe_layer_freq`")
        .way_out("take config.json from the same release as the weights");
  spec.unlisted_mtp_layers = config.count_or({"num_nextn_predict_layers"}, kMaxLayers, 0);
  return spec;
}

void add_attention(Inventory* out, const LayerSpec& layer) {
  const ModelSpec& spec = out->spec();
  const AttentionShape shape = spec.attention_shape(layer);
  if (spec.fused_qkv) {
    const uint64_t rows = (shape.heads + shape.kv_heads) * shape.head_dim + shape.kv_heads * shape.v_head_dim;
    out->linear("self_attn.qkv_proj", Role::kAttention, rows, spec.hidden, Projection::kQkv, spec.attention_bias);
    out->linear("self_attn.o_proj", Role::kAttention, spec.hidden, shape.heads * shape.v_head_dim, Projection::kO);
  } else {
    add_gqa(out, false);
  }
  if (spec.sinks || (spec.sliding_sinks && layer.sliding_window != 0))
    out->add("self_attn.attention_sink_bias", Role::kAttention, {shape.heads});
}

void MimoV2::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    out.norm("input_layernorm", spec.hidden);
    add_attention(&out, spec.layers[i]);
    out.norm("post_attention_layernorm", spec.hidden);
    if (spec.layers[i].mlp == MlpKind::kDense) {
      add_gated_mlp(&out, "mlp", Role::kDenseMlp, spec.dense_intermediate);
    } else {
      add_deepseek_moe(&out);
    }
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& mimo_v2() {
  static const MimoV2 family;
  return family;
}

}  // namespace nibble::model_families
