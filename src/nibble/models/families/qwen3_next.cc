// Qwen3-Next: three layers of Gated DeltaNet to one of grouped-query attention whose heads are gated, a quarter of each
// head rotated, softmax router, one shared expert behind a gate of its own, experts one by one.
//
// Names and shapes: transformers 5.24, qwen3_next; experts one by one by its table of renamed tensors. Releases hold an
// MTP layer under "mtp." that their configuration does not declare: it is classified when found, and not listed.
#include "nibble/models/families/linear_blocks.h"

namespace nibble::model_families {
namespace {

class Qwen3Next final : public NamedFamily {
 public:
  Qwen3Next() : NamedFamily("qwen3_next", {"qwen3_next"}, {"Qwen3NextForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
};

ModelSpec Qwen3Next::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "model.");
  spec.mtp_prefix = "mtp.";
  spec.rope = parse_quarter_rope(config);
  config.require_each({"head_dim", "num_key_value_heads", "shared_expert_intermediate_size"});
  parse_gqa(config, &spec);
  spec.head_dim = config.size({"head_dim"}, kMaxDimension);
  spec.qk_norm = QkNorm::kPerHead;
  spec.output_gate = true;
  parse_gated_delta_net(config, &spec);
  parse_linear_layers(config, {}, AttentionKind::kGqa, &spec);
  parse_qwen_moe(config, &spec);
  parse_sparse_step(config, &spec);
  return spec;
}

void Qwen3Next::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    out.norm("input_layernorm", spec.hidden);
    if (spec.layers[i].attention == AttentionKind::kLinear) {
      add_gated_delta_net(&out, true);
    } else {
      add_gated_gqa(&out);
    }
    out.norm("post_attention_layernorm", spec.hidden);
    if (spec.layers[i].mlp == MlpKind::kDense) {
      add_gated_mlp(&out, "mlp", Role::kDenseMlp, spec.dense_intermediate);
    } else {
      add_qwen_moe(&out);
    }
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& qwen3_next() {
  static const Qwen3Next family;
  return family;
}

}  // namespace nibble::model_families
