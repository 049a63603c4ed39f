// Hy3: grouped-query attention with norms over each head, sigmoid router with a correction bias, one shared expert,
// first layer dense, one MTP layer behind the last ("model.layers.80."). Shapes: transformers 5.24, hy_v3. Its
// conversion mapping gives the release's names (router.gate, expert_bias, shared_mlp, experts one by one), public
// loaders of the MTP layer that layer's; the preview's files had router.expert_bias.
#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

// transformers' values.
constexpr double kDefaultTheta = 11158840, kDefaultScaling = 2.826;
constexpr uint64_t kDefaultDense = 1;

class HyV3 final : public NamedFamily {
 public:
  HyV3() : NamedFamily("hy_v3", {"hy_v3"}, {"HYV3ForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
};

ModelSpec HyV3::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "model.");
  spec.rope = parse_rope(config, kDefaultTheta);
  config.require_each({"head_dim", "num_key_value_heads"});
  parse_gqa(config, &spec);
  spec.qk_norm = QkNorm::kPerHead;
  spec.mlp_bias = config.flag_or({"mlp_bias"}, false);
  parse_experts(config, &spec);
  parse_deepseek_router(config, &spec);
  spec.routed_scaling_factor = config.positive_or({"router_scaling_factor"}, kDefaultScaling);
  parse_dense_first(config, &spec, kDefaultDense);
  parse_mtp(config, &spec);
  return spec;
}

void add_moe(Inventory* out) {
  const ModelSpec& spec = out->spec();
  out->linear("mlp.router.gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
  out->add("mlp.expert_bias", Role::kRouter, {spec.experts});
  add_experts(out);
  if (spec.shared_intermediate != 0)
    add_gated_mlp(out, "mlp.shared_mlp", Role::kSharedExpert, spec.shared_intermediate, spec.mlp_bias);
}

void add_mtp_glue(Inventory* out) {
  const uint64_t hidden = out->spec().hidden;
  for (const char* norm : {"enorm", "hnorm", "final_layernorm"}) out->norm(norm, hidden);
  out->linear("eh_proj", Role::kMtp, hidden, 2 * hidden, Projection::kNone);
}

void HyV3::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  const size_t layers = spec.layers.size();
  for (size_t i = 0; i < layers + spec.mtp_layers; ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    if (i >= layers) add_mtp_glue(&out);
    out.norm("input_layernorm", spec.hidden);
    add_gqa(&out, spec.attention_bias);
    out.norm("post_attention_layernorm", spec.hidden);
    if (i < layers && spec.layers[i].mlp == MlpKind::kDense) {
      add_gated_mlp(&out, "mlp", Role::kDenseMlp, spec.dense_intermediate, spec.mlp_bias);
    } else {
      add_moe(&out);
    }
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& hy_v3() {
  static const HyV3 family;
  return family;
}

}  // namespace nibble::model_families
