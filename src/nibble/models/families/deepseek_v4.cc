// DeepSeek-V4 (Flash, Pro) under the vendor's own names, without "model.": one shared key/value head, low-rank queries
// and grouped low-rank outputs, a sliding window plus entries compressed over 4 (with an indexer) or 128 tokens,
// hyper-connections, hash routing in the first layers, MTP under "mtp.N.". For inventories and casts only.
//
// Names and shapes: a public header listing of DeepSeek-V4-Flash (FORMATS.md §6.3 knows a part of it); transformers
// 5.24, deepseek_v4 gives the same shapes under other names. The compressor's matrices are twice as wide where entries
// overlap (ratio 4). hc_*, attn_sink, ape and tid2eid have no ".weight".
#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

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

// The scaling belongs to the compressed entries alone, which also have their own theta. Newer files keep the two apart.
RopeSpec parse_v4_rope(const ConfigReader& config) {
  RopeSpec rope;
  const auto parameters = config.maybe_section("rope_parameters");
  if (parameters && parameters->has("compress")) {
    rope.theta = parameters->section("main").positive({"rope_theta"});
    const ConfigReader compress = parameters->section("compress");
    parse_rope_scaling(compress, &rope);
    rope.compress_theta = compress.positive({"rope_theta"});
  } else {
    rope = parse_rope(config, 10000);
    rope.compress_theta = config.positive_or({"compress_rope_theta"}, 160000);
  }
  rope.interleaved = true;
  return rope;
}

ModelSpec DeepseekV4::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "");
  spec.mtp_prefix = "mtp.";
  spec.rope = parse_v4_rope(config);
  spec.heads = config.size({"num_attention_heads"}, kMaxDimension);
  spec.kv_heads = 1;
  spec.head_dim = config.size({"head_dim"}, kMaxDimension);
  spec.q_lora_rank = config.size({"q_lora_rank"}, kMaxDimension);
  spec.qk_rope_head_dim = config.size({"qk_rope_head_dim"}, spec.head_dim);
  spec.o_groups = config.size({"o_groups"}, spec.heads);
  spec.o_lora_rank = config.size({"o_lora_rank"}, kMaxDimension);
  spec.hyper_streams = config.size({"hc_mult"}, 1024);
  spec.sinks = true;
  parse_indexer(config, &spec);
  parse_experts(config, &spec);
  parse_deepseek_router(config, &spec);
  parse_mtp(config, &spec);
  spec.router = RouterKind::kSqrtSoftplusBias;
  spec.activation = Activation::kClampedSwiglu;
  spec.swiglu_limit = config.positive_or({"swiglu_limit"}, 10);
  spec.expert_naming = {"ffn", "w1", "w3", "w2", Fusion::kNone, false};
  const uint64_t window = config.size({"sliding_window"}, kMaxDimension);
  const std::vector<uint64_t> ratios = parse_ratios(config, spec);
  const uint64_t hash_layers = config.count_or({"num_hash_layers"}, kMaxLayers, 3);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const uint64_t ratio = i < ratios.size() ? ratios[i] : 0;
    spec.layers[i] = {AttentionKind::kCompressed, MlpKind::kMoe,  window, ratio,
                      ratio == kIndexedRatio,     i < hash_layers};
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
  const uint64_t q = spec.heads * spec.head_dim;
  const uint64_t low = spec.o_groups * spec.o_lora_rank;
  out->norm("attn_norm", spec.hidden);
  out->linear("attn.wq_a", Role::kAttention, spec.q_lora_rank, spec.hidden, Projection::kQa);
  out->norm("attn.q_norm", spec.q_lora_rank);
  out->linear("attn.wq_b", Role::kAttention, q, spec.q_lora_rank, Projection::kQb);
  out->linear("attn.wkv", Role::kAttention, spec.head_dim, spec.hidden, Projection::kOther);
  out->norm("attn.kv_norm", spec.head_dim);
  out->linear("attn.wo_a", Role::kAttention, low, q / spec.o_groups, Projection::kOther);
  out->linear("attn.wo_b", Role::kAttention, spec.hidden, low, Projection::kO);
  out->add("attn.attn_sink", Role::kAttention, {spec.heads});
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
  add_experts(out);
  const uint64_t shared = spec.shared_intermediate;
  if (shared == 0) return;
  out->linear("ffn.shared_experts.w1", Role::kSharedExpert, shared, spec.hidden, Projection::kGate);
  out->linear("ffn.shared_experts.w3", Role::kSharedExpert, shared, spec.hidden, Projection::kUp);
  out->linear("ffn.shared_experts.w2", Role::kSharedExpert, spec.hidden, shared, Projection::kDown);
}

// The mixing of residual streams before `block`, "hc_attn" or "hc_ffn": pre, post and combination weights at once.
void add_hyper_connection(Inventory* out, const std::string& block) {
  const uint64_t streams = out->spec().hyper_streams;
  const uint64_t mixes = (2 + streams) * streams;
  out->add(block + "_fn", Role::kNorm, {mixes, streams * out->spec().hidden});
  out->add(block + "_base", Role::kNorm, {mixes});
  out->add(block + "_scale", Role::kNorm, {3});
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
    add_hyper_connection(&out, "hc_attn");
    add_attention(&out, layer.compress_ratio);
    add_hyper_connection(&out, "hc_ffn");
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
