// GLM-4.5, 4.6, 4.7: grouped-query attention (biases on q, k and v only; norms over heads in the large ones), half of
// each head rotated, DeepSeek's router and shared expert, first layers dense, one MTP layer behind the last. Names and
// shapes: transformers 5.24, glm4_moe; the MTP layer's from the releases' naming, as DeepSeek-V3's.
#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

class Glm4Moe final : public NamedFamily {
 public:
  Glm4Moe() : NamedFamily("glm4_moe", {"glm4_moe"}, {"Glm4MoeForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
};

ModelSpec Glm4Moe::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "model.");
  spec.rope = parse_rope(config);
  config.require_each({"num_key_value_heads"});
  parse_gqa(config, &spec);
  spec.qk_norm = config.flag_or({"use_qk_norm"}, false) ? QkNorm::kPerHead : QkNorm::kNone;
  parse_experts(config, &spec);
  parse_deepseek_router(config, &spec);
  parse_dense_first(config, &spec);
  parse_mtp(config, &spec);
  return spec;
}

void Glm4Moe::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  const size_t layers = spec.layers.size();
  for (size_t i = 0; i < layers + spec.mtp_layers; ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    if (i >= layers) add_deepseek_mtp_glue(&out);
    out.norm("input_layernorm", spec.hidden);
    add_gqa(&out, false);
    out.norm("post_attention_layernorm", spec.hidden);
    if (i < layers && spec.layers[i].mlp == MlpKind::kDense) {
      add_gated_mlp(&out, "mlp", Role::kDenseMlp, spec.dense_intermediate);
    } else {
      add_deepseek_moe(&out);
    }
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& glm4_moe() {
  static const Glm4Moe family;
  return family;
}

}  // namespace nibble::model_families
