// Llama (dense): grouped-query attention, gated MLP, no experts. Also the architecture of many small models (SmolLM2).
// Names and shapes: transformers 5.24, llama. GGUF: FORMATS.md §9.4; there queries and keys are permuted for pairwise
// rotation, and a missing output.weight means that the head is the embedding.
#include <nlohmann/json.hpp>

#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"
#include "nibble/models/families/common_gguf.h"

namespace nibble::model_families {
namespace {

class Llama final : public NamedFamily {
 public:
  Llama() : NamedFamily("llama", {"llama"}, {"LlamaForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
  std::optional<std::string_view> gguf_architecture() const override { return "llama"; }
  ModelSpec parse_gguf(const GgufFile& gguf, const std::string& source_name) const override;
  Json config_from_gguf(const GgufFile& gguf, const ModelSpec& spec) const override;
  std::string name_from_gguf(std::string_view gguf_name) const override;
  bool gguf_rotary_pairs() const override { return true; }
};

ModelSpec Llama::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "model.");
  spec.rope = parse_rope(config, 10000);  // the first release's files do not state it
  parse_gqa(config, &spec);
  spec.mlp_bias = config.flag_or({"mlp_bias"}, false);
  spec.dense_intermediate = config.size({"intermediate_size"}, kMaxDimension);
  return spec;
}

void Llama::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    out.norm("input_layernorm", spec.hidden);
    add_gqa(&out, spec.attention_bias);
    out.norm("post_attention_layernorm", spec.hidden);
    add_gated_mlp(&out, "mlp", Role::kDenseMlp, spec.dense_intermediate, spec.mlp_bias);
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

ModelSpec Llama::parse_gguf(const GgufFile& gguf, const std::string& source_name) const {
  const GgufSpecReader reader(gguf, source_name, "llama");
  // The architecture also carries Mixtral, and biases that would need the rotary permutation: neither is read.
  for (const char* name : {"blk.0.ffn_gate_inp.weight", "blk.0.attn_q.bias"}) {
    if (reader.has_tensor(name))
      throw reader.refuse("a Llama file with experts or attention biases cannot be read from GGUF")
          .tensor(name)
          .way_out("take the safetensors release of this model");
  }
  return parse_gguf_decoder(reader, *this);
}

Json Llama::config_from_gguf(const GgufFile& gguf, const ModelSpec& spec) const {
  Json config = gguf_decoder_config(gguf, spec, "LlamaForCausalLM", "llama");
  config["intermediate_size"] = spec.dense_intermediate;
  config["mlp_bias"] = false;
  config["pretraining_tp"] = 1;
  return config;
}

std::string Llama::name_from_gguf(std::string_view gguf_name) const {
  static const GgufNames names{{{"ffn_norm.weight", "post_attention_layernorm.weight"},
                                {"ffn_gate.weight", "mlp.gate_proj.weight"},
                                {"ffn_up.weight", "mlp.up_proj.weight"},
                                {"ffn_down.weight", "mlp.down_proj.weight"}}};
  return names.translate(gguf_name);
}

}  // namespace

const Family& llama() {
  static const Llama family;
  return family;
}

}  // namespace nibble::model_families
