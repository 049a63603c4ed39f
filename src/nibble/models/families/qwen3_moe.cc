// Qwen3-MoE: grouped-query attention with norms over each query and key head, softmax router, experts one by one.
// Later members of the line add one shared expert behind a gate of its own. Names and shapes: transformers 5.24,
// qwen3_moe; FORMATS.md §10. GGUF: architecture qwen3moe, experts in stacks of one projection, all layers MoE, the
// chosen experts' weights normalised.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"
#include "nibble/models/families/common_gguf.h"

namespace nibble::model_families {
namespace {

class Qwen3Moe final : public NamedFamily {
 public:
  Qwen3Moe() : NamedFamily("qwen3_moe", {"qwen3_moe"}, {"Qwen3MoeForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
  std::optional<std::string_view> gguf_architecture() const override { return "qwen3moe"; }
  ModelSpec parse_gguf(const GgufFile& gguf, const std::string& source_name) const override;
  Json config_from_gguf(const GgufFile& gguf, const ModelSpec& spec) const override;
  std::string name_from_gguf(std::string_view gguf_name) const override;
};

ModelSpec Qwen3Moe::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "model.");
  spec.rope = parse_rope(config);
  config.require_each({"num_key_value_heads"});
  parse_gqa(config, &spec);
  spec.qk_norm = QkNorm::kPerHead;
  parse_experts(config, &spec);
  spec.router = RouterKind::kSoftmaxTopK;
  spec.norm_topk_prob = config.flag_or({"norm_topk_prob"}, false);
  spec.expert_intermediate = config.size({"moe_intermediate_size"}, kMaxDimension);
  spec.shared_intermediate = config.count_or({"shared_expert_intermediate_size"}, kMaxDimension, 0);
  spec.shared_experts = spec.shared_intermediate != 0 ? 1 : 0;
  parse_sparse_step(config, &spec);
  if (config.flag_or({"use_sliding_window"}, false)) {
    const uint64_t window = config.size({"sliding_window"}, kMaxDimension);
    if (!parse_sliding_layers(config, window, &spec)) {
      for (LayerSpec& layer : spec.layers) layer.sliding_window = window;
    }
  }
  return spec;
}

void Qwen3Moe::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    out.norm("input_layernorm", spec.hidden);
    add_gqa(&out, spec.attention_bias);
    out.norm("post_attention_layernorm", spec.hidden);
    if (spec.layers[i].mlp == MlpKind::kDense) {
      add_gated_mlp(&out, "mlp", Role::kDenseMlp, spec.dense_intermediate);
      continue;
    }
    out.linear("mlp.gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
    add_experts(&out);
    if (spec.shared_intermediate != 0) {
      add_gated_mlp(&out, "mlp.shared_expert", Role::kSharedExpert, spec.shared_intermediate);
      out.linear("mlp.shared_expert_gate", Role::kRouter, 1, spec.hidden, Projection::kNone);
    }
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

ModelSpec Qwen3Moe::parse_gguf(const GgufFile& gguf, const std::string& source_name) const {
  const GgufSpecReader reader(gguf, source_name, "qwen3moe");
  ModelSpec spec = parse_gguf_decoder(reader, *this);
  spec.qk_norm = QkNorm::kPerHead;
  spec.experts = reader.size("expert_count", std::min(kMaxExperts, kMaxLayerExperts / spec.layers.size()));
  spec.experts_per_token = reader.size("expert_used_count", spec.experts);
  spec.expert_intermediate = reader.size("expert_feed_forward_length", kMaxDimension);
  spec.router = RouterKind::kSoftmaxTopK;
  spec.norm_topk_prob = true;
  for (LayerSpec& layer : spec.layers) layer.mlp = MlpKind::kMoe;
  return spec;
}

Json Qwen3Moe::config_from_gguf(const GgufFile& gguf, const ModelSpec& spec) const {
  Json config = gguf_decoder_config(gguf, spec, "Qwen3MoeForCausalLM", "qwen3_moe");
  config["decoder_sparse_step"] = 1;
  config["intermediate_size"] = spec.dense_intermediate;
  config["mlp_only_layers"] = Json::array();
  config["moe_intermediate_size"] = spec.expert_intermediate;
  config["norm_topk_prob"] = spec.norm_topk_prob;
  config["num_experts"] = spec.experts;
  config["num_experts_per_tok"] = spec.experts_per_token;
  config["sliding_window"] = nullptr;
  config["use_sliding_window"] = false;
  return config;
}

std::string Qwen3Moe::name_from_gguf(std::string_view gguf_name) const {
  static const GgufNames names{{{"ffn_norm.weight", "post_attention_layernorm.weight"},
                                {"attn_q_norm.weight", "self_attn.q_norm.weight"},
                                {"attn_k_norm.weight", "self_attn.k_norm.weight"},
                                {"ffn_gate_inp.weight", "mlp.gate.weight"},
                                {"ffn_gate_exps.weight", "mlp.experts.gate_proj"},
                                {"ffn_up_exps.weight", "mlp.experts.up_proj"},
                                {"ffn_down_exps.weight", "mlp.experts.down_proj"}}};
  return names.translate(gguf_name);
}

}  // namespace

const Family& qwen3_moe() {
  static const Qwen3Moe family;
  return family;
}

}  // namespace nibble::model_families
