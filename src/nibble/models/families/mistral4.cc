// Mistral Small 4, the text model alone: DeepSeek-V3's attention and experts behind a softmax router without a
// correction bias, every layer MoE unless the configuration says otherwise. Names and shapes: transformers 5.24,
// mistral4, which has no other names for files: experts are stacks, gate then up. The multimodal release puts the same
// names under "language_model." and another model_type; its configuration is not known here.
#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

constexpr uint64_t kDefaultDense = 0;  // transformers'

class Mistral4 final : public NamedFamily {
 public:
  Mistral4() : NamedFamily("mistral4", {"mistral4"}, {"Mistral4ForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
};

ModelSpec Mistral4::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "model.");
  spec.rope = parse_rope(config);
  spec.rope.interleaved = config.flag_or({"rope_interleave"}, true);
  config.require_each({"q_lora_rank"});
  parse_mla(config, &spec);
  parse_experts(config, &spec);
  parse_deepseek_router(config, &spec);
  spec.router = RouterKind::kSoftmaxTopK;
  parse_dense_first(config, &spec, kDefaultDense);
  spec.expert_naming.native = Fusion::kGateThenUp;
  return spec;
}

void Mistral4::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    out.norm("input_layernorm", spec.hidden);
    add_mla(&out);
    out.norm("post_attention_layernorm", spec.hidden);
    if (spec.layers[i].mlp == MlpKind::kDense) {
      add_gated_mlp(&out, "mlp", Role::kDenseMlp, spec.dense_intermediate);
      continue;
    }
    out.linear("mlp.gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
    add_experts(&out);
    if (spec.shared_intermediate != 0)
      add_gated_mlp(&out, "mlp.shared_experts", Role::kSharedExpert, spec.shared_intermediate);
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& mistral4() {
  static const Mistral4 family;
  return family;
}

}  // namespace nibble::model_families
