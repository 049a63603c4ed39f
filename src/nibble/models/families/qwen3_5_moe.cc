// Qwen3.5, Qwen3.6 and Qwen3.8 MoE: Qwen3-Next with DeltaNet's inputs in four tensors, a vision tower beside the text
// ("model.visual."; a release of the text alone has "model." instead of "model.language_model."), and an MTP layer with
// full attention under "mtp.".
//
// Names and shapes: transformers 5.24, qwen3_5_moe; the MTP layer's: public loaders of the releases, and the bytes of
// Qwen3.8-2.4T-A95B's index, which agree to the byte. The experts of 16-bit releases are stacks of gate and up (rows of
// gate first), those of quantized ones stand one by one.
#include <array>

#include "nibble/models/families/linear_blocks.h"

namespace nibble::model_families {
namespace {

class Qwen35Moe final : public NamedFamily {
 public:
  Qwen35Moe()
      : NamedFamily("qwen3_5_moe", {"qwen3_5_moe", "qwen3_5_moe_text"},
                    {"Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
  std::span<const std::string_view> other_parts() const override {
    static constexpr std::array<std::string_view, 1> kParts{"model.visual."};
    return kParts;
  }
};

void parse_text(const ConfigReader& config, ModelSpec* spec) {
  spec->mtp_prefix = "mtp.layers.";
  spec->rope = parse_quarter_rope(config);
  config.require_each({"head_dim", "num_key_value_heads"});
  parse_gqa(config, spec);
  spec->head_dim = config.size({"head_dim"}, kMaxDimension);
  spec->qk_norm = QkNorm::kPerHead;
  spec->output_gate = config.flag_or({"attn_output_gate"}, true);
  parse_gated_delta_net(config, spec);
  parse_linear_layers(config, {}, AttentionKind::kGqa, spec);
  parse_qwen_moe(config, spec);
  spec->expert_naming.native = Fusion::kGateThenUp;
  parse_mtp(config, spec);
  if (config.flag_or({"mtp_use_dedicated_embeddings"}, false))
    throw config.refuse("the MTP layers have embeddings of their own, whose names are not known")
        .value("mtp_use_dedicated_embeddings", "true")
        .way_out("use a release of nibble that knows them");
}

ModelSpec Qwen35Moe::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  const auto text = config.maybe_section("text_config");
  ModelSpec spec = text ? parse_decoder(*text, "model.language_model.") : parse_decoder(config, "model.");
  spec.model_type = config.text_or({"model_type"}, "qwen3_5_moe");
  parse_text(text ? *text : config, &spec);
  return spec;
}

// What stands before the MTP layers, one of each however many they are.
void add_mtp_glue(Inventory* out) {
  const uint64_t hidden = out->spec().hidden;
  const auto add = [out](const char* name, std::vector<uint64_t> shape) {
    ParamSpec param;
    param.name = name;
    param.shape = std::move(shape);
    out->emit(std::move(param));
  };
  add("mtp.fc.weight", {hidden, 2 * hidden});
  for (const char* norm : {"mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight", "mtp.norm.weight"})
    add(norm, {hidden});
}

void Qwen35Moe::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  const size_t layers = spec.layers.size();
  for (size_t i = 0; i < layers + spec.mtp_layers; ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    if (i == layers) add_mtp_glue(&out);
    out.norm("input_layernorm", spec.hidden);
    if (i < layers && spec.layers[i].attention == AttentionKind::kLinear) {
      add_gated_delta_net(&out, false);
    } else {
      add_gated_gqa(&out);
    }
    out.norm("post_attention_layernorm", spec.hidden);
    add_qwen_moe(&out);
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& qwen3_5_moe() {
  static const Qwen35Moe family;
  return family;
}

}  // namespace nibble::model_families
