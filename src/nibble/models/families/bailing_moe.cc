// Ling-1T, Ring-1T and Ling 2.0 (BailingMoeV2): grouped-query attention in one matrix, norms over query and key heads,
// half of each head rotated, DeepSeek's router and shared expert, first layers dense, MTP layers behind the last.
//
// Names: public loaders and converters of the releases; shapes follow from the configuration. transformers has no such
// model. Ling 1 calls itself bailing_moe too, and is another architecture: it is refused.
#include <algorithm>

#include "nibble/models/families/bailing.h"

namespace nibble {

void parse_bailing_moe(const ConfigReader& config, ModelSpec* spec, std::optional<uint64_t> default_dense) {
  parse_experts(config, spec);
  parse_deepseek_router(config, spec);
  const uint64_t shared =
      config.size_or({"moe_shared_expert_intermediate_size"}, kMaxDimension, spec->expert_intermediate);
  spec->shared_intermediate = spec->shared_experts * shared;
  parse_dense_first(config, spec, default_dense);
  parse_mtp(config, spec);
}

void add_word_embeddings(Inventory* out) {
  out->add("word_embeddings.weight", Role::kEmbedding, {out->spec().vocabulary, out->spec().hidden});
}

void add_bailing_mlp(Inventory* out, MlpKind kind) {
  const ModelSpec& spec = out->spec();
  if (kind == MlpKind::kDense) {
    add_gated_mlp(out, "mlp", Role::kDenseMlp, spec.dense_intermediate);
    return;
  }
  out->linear("mlp.gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
  out->add("mlp.gate.expert_bias", Role::kRouter, {spec.experts});
  add_experts(out);
  if (spec.shared_intermediate != 0)
    add_gated_mlp(out, "mlp.shared_experts", Role::kSharedExpert, spec.shared_intermediate);
}

void add_bailing_mtp_glue(Inventory* out) {
  const uint64_t hidden = out->spec().hidden;
  out->norm("enorm", hidden);
  out->norm("hnorm", hidden);
  out->linear("eh_proj", Role::kMtp, hidden, 2 * hidden, Projection::kNone);
  out->norm("final_layernorm", hidden);
}

namespace model_families {
namespace {

class BailingMoe final : public NamedFamily {
 public:
  BailingMoe() : NamedFamily("bailing_moe", {"bailing_moe", "bailing_moe_v2"}, {"BailingMoeV2ForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
};

void refuse_first_generation(const ConfigReader& config) {
  const auto names = config.texts("architectures", 0).value_or(std::vector<std::string>{});
  if (std::find(names.begin(), names.end(), "BailingMoeForCausalLM") == names.end()) return;
  throw config.refuse("this is the first generation of bailing_moe, which has another router and attention")
      .value("architectures", "BailingMoeForCausalLM")
      .way_out("use a release of nibble that knows it");
}

ModelSpec BailingMoe::parse(const Json& json, const std::string& source_name) const {
  // Defaults of the releases' own configuration class.
  constexpr double kEps = 1e-6, kTheta = 600000, kRotated = 0.5, kScale = 2.5;
  constexpr uint64_t kGroups = 8, kTopGroups = 4;
  const ConfigReader config(json, source_name);
  refuse_first_generation(config);
  ModelSpec spec = parse_decoder(config, "model.", kEps);
  spec.rope = parse_rope(config, kTheta);
  if (!config.has("partial_rotary_factor")) spec.rope.partial_rotary_factor = kRotated;
  config.require_each({"num_key_value_heads"});
  parse_gqa(config, &spec);
  spec.attention_bias = config.flag_or({"use_qkv_bias"}, false);
  spec.qk_norm = config.flag_or({"use_qk_norm"}, true) ? QkNorm::kPerHead : QkNorm::kNone;
  parse_bailing_moe(config, &spec);
  spec.n_group = config.count_or({"n_group"}, kMaxExperts, kGroups);
  spec.topk_group = config.count_or({"topk_group"}, kMaxExperts, kTopGroups);
  spec.routed_scaling_factor = config.positive_or({"routed_scaling_factor"}, kScale);
  return spec;
}

void add_fused_gqa(Inventory* out) {
  const ModelSpec& spec = out->spec();
  const uint64_t q = spec.heads * spec.head_dim;
  const uint64_t kv = spec.kv_heads * spec.head_dim;
  out->linear("attention.query_key_value", Role::kAttention, q + 2 * kv, spec.hidden, Projection::kQkv,
              spec.attention_bias);
  out->linear("attention.dense", Role::kAttention, spec.hidden, q, Projection::kO);
  if (spec.qk_norm == QkNorm::kNone) return;
  out->norm("attention.query_layernorm", spec.head_dim);
  out->norm("attention.key_layernorm", spec.head_dim);
}

void BailingMoe::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_word_embeddings(&out);
  const size_t layers = spec.layers.size();
  for (size_t i = 0; i < layers + spec.mtp_layers; ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    if (i >= layers) add_bailing_mtp_glue(&out);
    out.norm("input_layernorm", spec.hidden);
    add_fused_gqa(&out);
    out.norm("post_attention_layernorm", spec.hidden);
    add_bailing_mlp(&out, i < layers ? spec.layers[i].mlp : MlpKind::kMoe);
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& bailing_moe() {
  static const BailingMoe family;
  return family;
}

}  // namespace model_families
}  // namespace nibble
