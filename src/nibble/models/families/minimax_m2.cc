// MiniMax-M2 (M2, M2.1, M2.5, M2.7): grouped-query attention with norms over all query heads and all key heads at once,
// half of each head rotated, sigmoid router whose correction bias stands beside the gate, experts w1, w3, w2. Names and
// shapes: transformers 5.24, minimax_m2; FORMATS.md §10.
//
// The configuration declares MTP modules (use_mtp, num_mtp_modules), but no release that was looked at stores them and
// their names are not known: they are not listed here, and tensors of that kind would be copied with a note.
#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

class MinimaxM2 final : public NamedFamily {
 public:
  MinimaxM2() : NamedFamily("minimax_m2", {"minimax_m2"}, {"MiniMaxM2ForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
};

ModelSpec MinimaxM2::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "model.");
  spec.rope = parse_rope(config, 5e6);
  config.require_each({"head_dim", "num_key_value_heads"});
  parse_gqa(config, &spec);
  spec.attention_bias = false;
  // Older spelling of the partial rotation: the width itself.
  const uint64_t rotary = config.count_or({"rotary_dim"}, spec.head_dim, 0);
  if (rotary != 0) spec.rope.partial_rotary_factor = static_cast<double>(rotary) / static_cast<double>(spec.head_dim);
  if (config.flag_or({"use_qk_norm"}, true)) {
    const std::string kind = config.text_or({"qk_norm_type"}, "per_layer");
    if (kind != "per_layer" && kind != "per_head")
      throw config.refuse("`qk_norm_type` is unknown")
          .value("qk_norm_type", kind)
          .way_out("use a release of nibble that knows this kind of norm");
    spec.qk_norm = kind == "per_layer" ? QkNorm::kFullWidth : QkNorm::kPerHead;
  }
  parse_experts(config, &spec);
  spec.router = RouterKind::kSigmoidBias;
  spec.norm_topk_prob = true;
  spec.expert_intermediate = config.size({"intermediate_size"}, kMaxDimension);
  spec.expert_naming = {"block_sparse_moe", "w1", "w3", "w2", Fusion::kNone, false};
  for (LayerSpec& layer : spec.layers) layer.mlp = MlpKind::kMoe;
  return spec;
}

void MinimaxM2::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    out.norm("input_layernorm", spec.hidden);
    add_gqa(&out, false);
    out.norm("post_attention_layernorm", spec.hidden);
    out.linear("block_sparse_moe.gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
    out.add("block_sparse_moe.e_score_correction_bias", Role::kRouter, {spec.experts});
    add_experts(&out);
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& minimax_m2() {
  static const MinimaxM2 family;
  return family;
}

}  // namespace nibble::model_families
