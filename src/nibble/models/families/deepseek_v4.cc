// DeepSeek-V4 (Flash, Pro) under the vendor's own names, without "model.": one shared key/value head, low-rank queries
// and grouped low-rank outputs, a sliding window plus entries compressed over 4 (with an indexer) or 128 tokens,
// hyper-connections, hash routing in the first layers, MTP under "mtp.N.". For inventories and casts only.
//
// Names and shapes: a public header listing of DeepSeek-V4-Flash (FORMATS.md §6.3 knows a part of it); transformers
// 5.24, deepseek_v4 gives the same shapes under other names. The compressor's matrices are twice as wide where entries
// overlap (ratio 4). hc_*, attn_sink, ape and tid2eid have no ".weight".
#include "nibble/models/families/deepseek_v4.h"

namespace nibble::model_families {
namespace {

class DeepseekV4 final : public NamedFamily {
 public:
  DeepseekV4() : NamedFamily("deepseek_v4", {"deepseek_v4"}, {"DeepseekV4ForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
};

constexpr uint64_t kIndexedRatio = 4, kHeavyRatio = 128;

// Tokens per compressed entry in each layer: `compress_ratios` (MTP layers included), or the newer `layer_types`.
std::vector<uint64_t> parse_ratios(const ConfigReader& config, const ModelSpec& spec) {
  if (auto ratios = config.counts("compress_ratios", 0, kMaxDimension)) {
    if (ratios->size() < spec.layers.size())
      throw config.refuse("`compress_ratios` has fewer entries than layers")
          .value("entries", ratios->size())
          .value("num_hidden_layers", spec.layers.size())
          .way_out("take config.json from the same release as the weights");
    return *ratios;
  }
  const auto kinds = config.texts("layer_types", spec.layers.size());
  if (!kinds)
    throw config.refuse("the configuration lacks `compress_ratios` or `layer_types`")
        .way_out("take config.json from the same release as the weights");
  std::vector<uint64_t> ratios;
  for (const std::string& kind : *kinds) {
    const bool indexed = kind == "compressed_sparse_attention";
    if (!indexed && kind != "heavily_compressed_attention" && kind != "sliding_attention")
      throw config.refuse("an entry of `layer_types` is unknown to this family")
          .value("entry", kind)
          .way_out("use a release of nibble that knows this kind of layer");
    ratios.push_back(indexed ? kIndexedRatio : kind == "sliding_attention" ? 0 : kHeavyRatio);
  }
  return ratios;
}

ModelSpec DeepseekV4::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "");
  spec.mtp_prefix = "mtp.";
  parse_deepseek_v4_text(config, &spec);
  parse_mtp(config, &spec);
  const uint64_t window = config.size({"sliding_window"}, kMaxDimension);
  const std::vector<uint64_t> ratios = parse_ratios(config, spec);
  const uint64_t hash_layers = config.count_or({"num_hash_layers"}, kMaxLayers, 3);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const uint64_t ratio = i < ratios.size() ? ratios[i] : 0;
    LayerSpec& layer = spec.layers[i];
    layer.attention = AttentionKind::kCompressed;
    layer.mlp = MlpKind::kMoe;
    layer.sliding_window = window;
    layer.compress_ratio = ratio;
    layer.indexer = layer.chosen_keys = ratio == kIndexedRatio;
    layer.hash_routed = i < hash_layers;
  }
  return spec;
}

// Keys and their gates pooled into entries: MODULE.{wkv, wgate, ape, norm}.
void add_compressor(Inventory* out, const std::string& module, uint64_t ratio, uint64_t width) {
  const uint64_t wide = ratio == kIndexedRatio ? 2 * width : width;
  out->linear(module + ".wkv", Role::kAttention, wide, out->spec().hidden, Projection::kOther);
  out->linear(module + ".wgate", Role::kAttention, wide, out->spec().hidden, Projection::kOther);
  out->add(module + ".ape", Role::kAttention, {ratio, wide});
  out->norm(module + ".norm", width);
}

void add_attention(Inventory* out, uint64_t ratio) {
  const ModelSpec& spec = out->spec();
  add_deepseek_v4_attention(out);
  if (ratio == 0) return;
  add_compressor(out, "attn.compressor", ratio, spec.head_dim);
  if (ratio != kIndexedRatio) return;
  out->linear("attn.indexer.wq_b", Role::kAttention, spec.indexer.heads * spec.indexer.head_dim, spec.q_lora_rank,
              Projection::kOther);
  out->linear("attn.indexer.weights_proj", Role::kAttention, spec.indexer.heads, spec.hidden, Projection::kOther);
  add_compressor(out, "attn.indexer.compressor", ratio, spec.indexer.head_dim);
}

void add_moe(Inventory* out, bool hash_routed) {
  const ModelSpec& spec = out->spec();
  out->norm("ffn_norm", spec.hidden);
  out->linear("ffn.gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
  if (hash_routed) {
    out->table("ffn.gate.tid2eid", Role::kRouter, {spec.vocabulary, spec.experts_per_token});
  } else {
    out->add("ffn.gate.bias", Role::kRouter, {spec.experts});
  }
  add_deepseek_v4_experts(out);
}

void add_hyper_head(Inventory* out) {
  const uint64_t streams = out->spec().hyper_streams;
  out->add("hc_head_fn", Role::kNorm, {streams, streams * out->spec().hidden});
  out->add("hc_head_base", Role::kNorm, {streams});
  out->add("hc_head_scale", Role::kNorm, {1});
}

void DeepseekV4::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  out.add("embed.weight", Role::kEmbedding, {spec.vocabulary, spec.hidden});
  const size_t layers = spec.layers.size();
  for (size_t i = 0; i < layers + spec.mtp_layers; ++i) {
    const bool mtp = i >= layers;
    const LayerSpec layer = mtp ? LayerSpec{} : spec.layers[i];  // MTP: sliding window only, ordinary routing
    out.enter_layer(static_cast<int32_t>(i));
    add_deepseek_v4_hyper_connection(&out, "hc_attn");
    add_attention(&out, layer.compress_ratio);
    add_deepseek_v4_hyper_connection(&out, "hc_ffn");
    add_moe(&out, layer.hash_routed);
    if (!mtp) continue;
    out.linear("e_proj", Role::kMtp, spec.hidden, spec.hidden, Projection::kNone);
    out.linear("h_proj", Role::kMtp, spec.hidden, spec.hidden, Projection::kNone);
    for (const char* norm : {"enorm", "hnorm", "norm"}) out.norm(norm, spec.hidden);
    add_hyper_head(&out);
  }
  out.leave_layers();
  add_hyper_head(&out);
  out.norm("norm", spec.hidden);
  out.add("head.weight", Role::kHead, {spec.vocabulary, spec.hidden});
}

}  // namespace

const Family& deepseek_v4() {
  static const DeepseekV4 family;
  return family;
}

}  // namespace nibble::model_families
