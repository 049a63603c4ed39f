// Mixtral: grouped-query attention, every layer MoE, experts w1 (gate), w3 (up), w2 (down) under block_sparse_moe.
// Its softmax over all experts, renormalised over the chosen two, is the softmax over the two chosen logits. Names and
// shapes: transformers 5.24, mixtral.
#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

class Mixtral final : public NamedFamily {
 public:
  Mixtral() : NamedFamily("mixtral", {"mixtral"}, {"MixtralForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
};

ModelSpec Mixtral::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "model.");
  spec.rope = parse_rope(config, 1e6);
  config.require_each({"num_key_value_heads"});
  parse_gqa(config, &spec);
  spec.attention_bias = false;
  parse_experts(config, &spec);
  spec.router = RouterKind::kTopKSoftmax;
  spec.norm_topk_prob = true;
  spec.expert_intermediate = config.size({"intermediate_size"}, kMaxDimension);
  spec.expert_naming = {"block_sparse_moe", "w1", "w3", "w2", Fusion::kNone, false};
  const uint64_t window = config.count_or({"sliding_window"}, kMaxDimension, 0);
  for (LayerSpec& layer : spec.layers) {
    layer.mlp = MlpKind::kMoe;
    layer.sliding_window = window;
  }
  return spec;
}

void Mixtral::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    out.norm("input_layernorm", spec.hidden);
    add_gqa(&out, false);
    out.norm("post_attention_layernorm", spec.hidden);
    out.linear("block_sparse_moe.gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
    add_experts(&out);
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& mixtral() {
  static const Mixtral family;
  return family;
}

}  // namespace nibble::model_families
