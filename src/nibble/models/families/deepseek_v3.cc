// DeepSeek-V3, R1, V3.1 and V3.2, Kimi-K2: multi-head latent attention (V3.2: with an indexer that chooses the keys),
// first layers dense, sigmoid router with a correction bias and groups, shared expert, MTP layers behind the last
// ("model.layers.61."). Names and shapes: transformers 5.24, deepseek_v3 and deepseek_v32; the MTP layer's: FORMATS.md
// §6.2. V3.2's MTP layer has an indexer of its own (its parameter count says so).
#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_indexer.h"
#include "nibble/models/families/deepseek.h"

namespace nibble {

void parse_deepseek_text(const ConfigReader& config, ModelSpec* spec, std::optional<uint64_t> default_dense) {
  spec->rope = parse_rope(config);
  spec->rope.interleaved = config.flag_or({"rope_interleave"}, true);
  config.require_each({"q_lora_rank"});
  parse_mla(config, spec);
  parse_experts(config, spec);
  parse_deepseek_router(config, spec);
  parse_dense_first(config, spec, default_dense);
  parse_mtp(config, spec);
}

void visit_deepseek_text(const ModelSpec& spec, const ParamVisitor& visit) {
  Inventory out(spec, visit);
  add_embedding(&out);
  const size_t layers = spec.layers.size();
  for (size_t i = 0; i < layers + spec.mtp_layers; ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    if (i >= layers) add_deepseek_mtp_glue(&out);
    out.norm("input_layernorm", spec.hidden);
    add_mla(&out);
    add_indexer(&out);
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

namespace model_families {
namespace {

class DeepseekV3 final : public NamedFamily {
 public:
  DeepseekV3()
      : NamedFamily("deepseek_v3", {"deepseek_v3", "kimi_k2", "deepseek_v32"},
                    {"DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override {
    const ConfigReader config(json, source_name);
    ModelSpec spec = parse_decoder(config, "model.");
    parse_deepseek_text(config, &spec);
    if (spec.model_type == "deepseek_v32" || config.has("index_n_heads")) {
      parse_indexer(config, &spec);
      for (LayerSpec& layer : spec.layers) layer.indexer = true;
    }
    return spec;
  }
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override { visit_deepseek_text(spec, visit); }
};

}  // namespace

const Family& deepseek_v3() {
  static const DeepseekV3 family;
  return family;
}

}  // namespace model_families
}  // namespace nibble
