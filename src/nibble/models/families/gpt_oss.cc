// gpt-oss: grouped-query attention with biases and sinks, sliding and full layers in turn, router with a bias, clamped
// SwiGLU, experts fused over gate and up row by row and released in blocks of four bits, (E, 2I, H); dense files hold
// them transposed, (E, H, 2I). Names and shapes: FORMATS.md §5; transformers 5.24, gpt_oss. GGUF: FORMATS.md §9.3.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"
#include "nibble/models/families/common_gguf.h"

namespace nibble::model_families {
namespace {

constexpr double kAlpha = 1.702;

class GptOss final : public NamedFamily {
 public:
  GptOss() : NamedFamily("gpt_oss", {"gpt_oss"}, {"GptOssForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
  std::optional<std::string_view> gguf_architecture() const override { return "gpt-oss"; }
  ModelSpec parse_gguf(const GgufFile& gguf, const std::string& source_name) const override;
  Json config_from_gguf(const GgufFile& gguf, const ModelSpec& spec) const override;
  std::string name_from_gguf(std::string_view gguf_name) const override;

 private:
  // What no configuration says.
  static void complete(ModelSpec* spec);
};

void GptOss::complete(ModelSpec* spec) {
  spec->sinks = true;
  spec->router = RouterKind::kTopKSoftmax;
  spec->norm_topk_prob = true;
  spec->activation = Activation::kClampedSwiglu;
  spec->expert_naming.native = Fusion::kInterleaved;
  spec->expert_naming.biases = true;
  spec->expert_naming.transposed = true;
  for (LayerSpec& layer : spec->layers) layer.mlp = MlpKind::kMoe;
}

ModelSpec GptOss::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "model.");
  spec.rope = parse_rope(config, 150000);
  config.require_each({"head_dim", "num_key_value_heads"});
  parse_gqa(config, &spec);
  spec.attention_bias = config.flag_or({"attention_bias"}, true);
  parse_experts(config, &spec);
  spec.expert_intermediate = config.size({"intermediate_size"}, kMaxDimension);
  spec.swiglu_limit = config.positive_or({"swiglu_limit"}, 7);
  spec.swiglu_alpha = config.positive_or({"swiglu_alpha"}, kAlpha);
  const uint64_t window = config.count_or({"sliding_window"}, kMaxDimension, 0);
  if (!parse_sliding_layers(config, window, &spec)) {
    for (size_t i = 0; i < spec.layers.size(); i += 2) spec.layers[i].sliding_window = window;
  }
  complete(&spec);
  return spec;
}

void GptOss::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    out.norm("input_layernorm", spec.hidden);
    add_gqa(&out, spec.attention_bias);
    out.add("self_attn.sinks", Role::kAttention, {spec.heads});
    out.norm("post_attention_layernorm", spec.hidden);
    out.linear("mlp.router", Role::kRouter, spec.experts, spec.hidden, Projection::kNone, true);
    add_experts(&out);
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

ModelSpec GptOss::parse_gguf(const GgufFile& gguf, const std::string& source_name) const {
  const GgufSpecReader reader(gguf, source_name, "gpt-oss");
  ModelSpec spec = parse_gguf_decoder(reader, *this);
  spec.attention_bias = true;
  spec.experts = reader.size("expert_count", std::min(kMaxExperts, kMaxLayerExperts / spec.layers.size()));
  spec.experts_per_token = reader.size("expert_used_count", kMaxExperts);
  spec.expert_intermediate = reader.size_or("expert_feed_forward_length", kMaxDimension, spec.dense_intermediate);
  spec.dense_intermediate = 0;
  spec.swiglu_limit = 7;
  spec.swiglu_alpha = kAlpha;
  spec.rope.truncate = false;
  const uint64_t window = reader.size("attention.sliding_window", kMaxDimension);
  for (size_t i = 0; i < spec.layers.size(); i += 2) spec.layers[i].sliding_window = window;
  complete(&spec);
  return spec;
}

Json GptOss::config_from_gguf(const GgufFile& gguf, const ModelSpec& spec) const {
  Json config = gguf_decoder_config(gguf, spec, "GptOssForCausalLM", "gpt_oss");
  config["intermediate_size"] = spec.expert_intermediate;
  config["num_local_experts"] = spec.experts;
  config["num_experts_per_tok"] = spec.experts_per_token;
  config["experts_per_token"] = spec.experts_per_token;
  config["sliding_window"] = spec.layers.at(0).sliding_window;
  config["swiglu_limit"] = spec.swiglu_limit;
  Json kinds = Json::array();
  for (const LayerSpec& layer : spec.layers)
    kinds.push_back(layer.sliding_window != 0 ? "sliding_attention" : "full_attention");
  config["layer_types"] = std::move(kinds);
  return config;
}

std::string GptOss::name_from_gguf(std::string_view gguf_name) const {
  static const GgufNames names{{{"post_attention_norm.weight", "post_attention_layernorm.weight"},
                                {"attn_q.bias", "self_attn.q_proj.bias"},
                                {"attn_k.bias", "self_attn.k_proj.bias"},
                                {"attn_v.bias", "self_attn.v_proj.bias"},
                                {"attn_output.bias", "self_attn.o_proj.bias"},
                                {"attn_sinks.weight", "self_attn.sinks"},
                                {"ffn_gate_inp.weight", "mlp.router.weight"},
                                {"ffn_gate_inp.bias", "mlp.router.bias"},
                                {"ffn_gate_exps.weight", "mlp.experts.gate_proj"},
                                {"ffn_up_exps.weight", "mlp.experts.up_proj"},
                                {"ffn_down_exps.weight", "mlp.experts.down_proj"},
                                {"ffn_gate_up_exps.weight", "mlp.experts.gate_up_proj"},
                                {"ffn_gate_exps.bias", "mlp.experts.gate_proj_bias"},
                                {"ffn_up_exps.bias", "mlp.experts.up_proj_bias"},
                                {"ffn_down_exps.bias", "mlp.experts.down_proj_bias"},
                                {"ffn_gate_up_exps.bias", "mlp.experts.gate_up_proj_bias"}}};
  return names.translate(gguf_name);
}

}  // namespace

const Family& gpt_oss() {
  static const GptOss family;
  return family;
}

}  // namespace nibble::model_families
