// A model family as somebody would add one: plain attention, and experts under the name of a bird.
#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

class CanaryMoe final : public NamedFamily {
 public:
  CanaryMoe() : NamedFamily("canary_moe", {"canary_moe"}, {"CanaryMoeForCausalLM"}) {}

  ModelSpec parse(const Json& json, const std::string& source_name) const override {
    const ConfigReader config(json, source_name);
    ModelSpec spec = parse_decoder(config, "model.");
    spec.rope = parse_rope(config, 10000);
    parse_gqa(config, &spec);
    parse_experts(config, &spec);
    spec.expert_intermediate = config.size({"moe_intermediate_size"}, kMaxDimension);
    spec.expert_naming.block = "canary";
    for (LayerSpec& layer : spec.layers) layer.mlp = MlpKind::kMoe;
    return spec;
  }

  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override {
    Inventory out(spec, visit);
    add_embedding(&out);
    for (size_t i = 0; i < spec.layers.size(); ++i) {
      out.enter_layer(static_cast<int32_t>(i));
      out.norm("input_layernorm", spec.hidden);
      add_gqa(&out, spec.attention_bias);
      out.norm("post_attention_layernorm", spec.hidden);
      out.linear("canary.gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
      add_experts(&out);
    }
    out.leave_layers();
    add_final_norm_and_head(&out);
  }
};

}  // namespace

const Family& canary_moe() {
  static const CanaryMoe family;
  return family;
}

}  // namespace nibble::model_families
