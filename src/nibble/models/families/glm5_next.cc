// GLM-5.3-Flash: three layers of Kimi Delta Attention to one of multi-head latent attention without rotation, whose
// keys an indexer chooses in pools of tokens; hyper-connections around both halves of a layer, DeepSeek's router and
// shared expert, first layers dense. Text under "model.language_model.", a vision tower beside it, one MTP layer behind
// the last.
//
// Names: transformers 5.24, glm5_next, with its table of renamed tensors turned round (experts one by one, a
// convolution for each of q, k and v, hc_attn_* and hc_ffn_* at the layer); shapes from there. The MTP layer's: public
// listings of the release, which has latent attention with an indexer in it and no hyper-connections.
#include <array>

#include "nibble/models/families/linear_blocks.h"

namespace nibble::model_families {
namespace {

constexpr uint64_t kDefaultDense = 3;  // transformers'

class Glm5Next final : public NamedFamily {
 public:
  Glm5Next() : NamedFamily("glm5_next", {"glm5_next"}, {"Glm5NextForConditionalGeneration"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
  std::span<const std::string_view> other_parts() const override {
    static constexpr std::array<std::string_view, 1> kParts{"model.visual."};
    return kParts;
  }
};

// linear_attn_config repeats which layers are linear, from 0.
void check_kda_layers(const ConfigReader& linear, const ModelSpec& spec) {
  const auto named = linear.counts("kda_layers", 0, kMaxLayers);
  if (!named) return;
  std::vector<bool> listed(spec.layers.size());
  for (const uint64_t layer : *named) {
    if (layer < listed.size()) listed[layer] = true;
  }
  for (size_t i = 0; i < listed.size(); ++i) {
    if (listed[i] != (spec.layers[i].attention == AttentionKind::kLinear))
      throw linear.refuse("`layer_types` and `linear_attn_config.kda_layers` disagree about a layer")
          .value("layer", i)
          .way_out("take config.json from the same release as the weights");
  }
}

void parse_indexed_layers(const ConfigReader& text, ModelSpec* spec) {
  parse_indexer(text, spec);
  spec->indexer.tokens_per_key = text.size_or({"index_kpool"}, kMaxDimension, 16);  // transformers' default
  const auto kinds = text.texts("indexer_types", spec->layers.size());
  for (size_t i = 0; i < spec->layers.size(); ++i) {
    const std::string kind = kinds ? (*kinds)[i] : "full";
    if (kind != "full" && kind != "shared")
      throw text.refuse("an entry of `indexer_types` is unknown to this family")
          .value("layer", i)
          .value("entry", kind)
          .way_out("use a release of nibble that knows this kind of layer");
    // A layer that shares takes over which keys the one before has chosen: it has no indexer.
    spec->layers[i].indexer = spec->layers[i].attention == AttentionKind::kMla && kind == "full";
    spec->layers[i].chosen_keys = spec->layers[i].attention == AttentionKind::kMla;
  }
}

ModelSpec Glm5Next::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  const ConfigReader text = config.section("text_config");
  ModelSpec spec = parse_decoder(text, "model.language_model.");
  spec.model_type = config.text_or({"model_type"}, "glm5_next");
  text.require_each({"q_lora_rank"});
  parse_mla(text, &spec);
  const ConfigReader linear = text.section("linear_attn_config");
  const uint64_t heads = linear.size({"num_heads"}, kMaxDimension);
  const uint64_t width = linear.size({"head_dim"}, kMaxDimension);
  spec.linear = {heads, heads, width, width, linear.size({"short_conv_kernel_size"}, 1024)};
  parse_linear_layers(text, {{"deepseek_sparse_attention", "indexed_attention"}}, AttentionKind::kMla, &spec);
  check_kda_layers(linear, spec);
  parse_indexed_layers(text, &spec);
  spec.hyper_streams = text.size({"hc_mult"}, 1024);
  parse_experts(text, &spec);
  parse_deepseek_router(text, &spec);
  parse_dense_first(text, &spec, kDefaultDense);
  parse_mtp(text, &spec);
  spec.activation = Activation::kClampedSwiglu;
  spec.swiglu_limit = text.positive_or({"swiglu_limit"}, 10);  // transformers' default
  return spec;
}

void add_kda(Inventory* out) {
  const ModelSpec& spec = out->spec();
  const uint64_t rank = spec.linear.key_dim;
  const uint64_t width = spec.linear.heads * spec.linear.key_dim;
  add_kda_core(out, "self_attn");
  // Decay and output gate, both through a bottleneck as wide as a head.
  for (const char* gate : {"self_attn.f", "self_attn.g"}) {
    out->linear(std::string(gate) + "_a_proj", Role::kAttention, rank, spec.hidden, Projection::kOther);
    out->linear(std::string(gate) + "_b_proj", Role::kAttention, width, rank, Projection::kHeads);
  }
}

void add_pooled_indexer(Inventory* out) {
  const ModelSpec& spec = out->spec();
  const IndexerSpec& indexer = spec.indexer;
  const std::string module = "self_attn.indexer.";
  out->linear(module + "wq_b", Role::kAttention, indexer.heads * indexer.head_dim, spec.q_lora_rank,
              Projection::kOther);
  out->linear(module + "wk", Role::kAttention, indexer.head_dim, spec.hidden, Projection::kOther);
  out->norm(module + "k_norm", indexer.head_dim);
  out->add(module + "k_norm.bias", Role::kNorm, {indexer.head_dim});
  out->linear(module + "weights_proj", Role::kAttention, indexer.heads, spec.hidden, Projection::kOther);
  out->add(module + "index_kpool_compress_ape", Role::kAttention, {indexer.tokens_per_key, indexer.head_dim});
  out->add(module + "index_kpool_compress_gate", Role::kAttention, {indexer.head_dim, spec.hidden});
}

void add_hyper_connections(Inventory* out) {
  const uint64_t streams = out->spec().hyper_streams;
  const uint64_t mixes = (2 + streams) * streams;
  for (const std::string block : {"hc_attn", "hc_ffn"}) {
    out->add(block + "_fn", Role::kNorm, {mixes, streams * out->spec().hidden});
    out->add(block + "_base", Role::kNorm, {mixes});
    out->add(block + "_scale", Role::kNorm, {3});
  }
}

void Glm5Next::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  const size_t layers = spec.layers.size();
  for (size_t i = 0; i < layers + spec.mtp_layers; ++i) {
    const bool mtp = i >= layers;
    out.enter_layer(static_cast<int32_t>(i));
    if (mtp) add_deepseek_mtp_glue(&out);
    if (!mtp) add_hyper_connections(&out);
    out.norm("input_layernorm", spec.hidden);
    if (!mtp && spec.layers[i].attention == AttentionKind::kLinear) {
      add_kda(&out);
    } else {
      add_mla(&out);
      if (mtp || spec.layers[i].indexer) add_pooled_indexer(&out);
    }
    out.norm("post_attention_layernorm", spec.hidden);
    if (!mtp && spec.layers[i].mlp == MlpKind::kDense) {
      add_gated_mlp(&out, "mlp", Role::kDenseMlp, spec.dense_intermediate);
    } else {
      add_deepseek_moe(&out);
    }
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& glm5_next() {
  static const Glm5Next family;
  return family;
}

}  // namespace nibble::model_families
