// Ling-3.0-flash (BailingMoeV3): five layers of Kimi Delta Attention, with whole matrices for decay and output gate, to
// one of multi-head latent attention with a gate for each head; DeepSeek's router and shared expert, first layers
// dense, one MTP layer with latent attention behind the last.
//
// Names: transformers 5.24, bailing_hybrid, with its table of renamed tensors turned round ("attention." for
// "self_attn.", "dense" for the output of latent attention, a convolution for each of q, k and v); shapes from there.
// The MTP layer's: public converters of the release. Ling 2.5 shares the model type and has another linear attention:
// its configuration lacks short_conv_kernel_size and is refused for that.
#include "nibble/models/families/bailing.h"
#include "nibble/models/families/linear_blocks.h"

namespace nibble::model_families {
namespace {

class BailingHybrid final : public NamedFamily {
 public:
  BailingHybrid() : NamedFamily("bailing_hybrid", {"bailing_hybrid"}, {"BailingMoeV3ForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
};

// Other forms of the gates exist in the vendor's code, none of which is released.
void check_gates(const ConfigReader& config) {
  const std::string granularity = config.text_or({"gated_attention_proj_granularity_type"}, "head_wise");
  const bool whole = config.flag_or({"no_kda_lora"}, true);
  if (granularity == "head_wise" && whole) return;
  throw config.refuse("gates of linear or latent attention have a form that is unknown to this family")
      .value("gated_attention_proj_granularity_type", granularity)
      .value("no_kda_lora", whole ? "true" : "false")
      .way_out("use a release of nibble that knows this kind of layer");
}

ModelSpec BailingHybrid::parse(const Json& json, const std::string& source_name) const {
  constexpr double kTheta = 6e6;  // this and those below: transformers' defaults
  constexpr uint64_t kHeadDim = 128, kGroupSize = 6, kDense = 2;
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "model.");
  check_gates(config);
  spec.rope = parse_rope(config, kTheta);
  spec.rope.interleaved = config.flag_or({"rope_interleave"}, true);
  parse_mla(config, &spec);
  const uint64_t width = config.size_or({"head_dim"}, kMaxDimension, kHeadDim);
  spec.linear = {spec.heads, spec.heads, width, width, config.size({"short_conv_kernel_size"}, 1024)};
  parse_linear_layers(config, {{}, "layer_group_size", kGroupSize}, AttentionKind::kMla, &spec);
  spec.output_gate = true;
  parse_bailing_moe(config, &spec, kDense);
  return spec;
}

void add_kda(Inventory* out) {
  const ModelSpec& spec = out->spec();
  const uint64_t width = spec.linear.heads * spec.linear.key_dim;
  add_kda_core(out, "attention");
  out->linear("attention.f_proj", Role::kAttention, width, spec.hidden, Projection::kHeads);
  out->linear("attention.g_proj", Role::kAttention, width, spec.hidden, Projection::kHeads);
}

void add_gated_mla(Inventory* out) {
  const ModelSpec& spec = out->spec();
  add_mla(out, "attention", "dense");
  out->linear("attention.g_proj", Role::kAttention, spec.heads, spec.hidden, Projection::kHeads);
}

void BailingHybrid::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_word_embeddings(&out);
  const size_t layers = spec.layers.size();
  for (size_t i = 0; i < layers + spec.mtp_layers; ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    if (i >= layers) add_bailing_mtp_glue(&out);
    out.norm("input_layernorm", spec.hidden);
    if (i < layers && spec.layers[i].attention == AttentionKind::kLinear) {
      add_kda(&out);
    } else {
      add_gated_mla(&out);
    }
    out.norm("post_attention_layernorm", spec.hidden);
    add_bailing_mlp(&out, i < layers ? spec.layers[i].mlp : MlpKind::kMoe);
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& bailing_hybrid() {
  static const BailingHybrid family;
  return family;
}

}  // namespace nibble::model_families
