// DeepSeek-V4.1-Flash, the text model of a multimodal release, under the vendor's names, without "model.". As
// DeepSeek-V4, but few layers keep what all read: only the sources that the configuration names compress keys and
// values (over 2 tokens with a gate, over 1 without), the others with a ratio read the nearest source before them; the
// same for the indexers' keys and choices. No head of the hyper-connections, no hash routing; two layers look up hashes
// of the last tokens in tables far larger than the rest (Engram). Draft layers under "mtp." are not listed.
//
// Names and shapes: public header listings of the release and converters that account for each of its tensors;
// transformers 5.24 has no class for it. Counted without Engram: neither its tables nor the projections behind them.
#include <algorithm>
#include <array>

#include "nibble/models/families/deepseek_v4.h"

namespace nibble::model_families {
namespace {

constexpr uint64_t kMaxRows = uint64_t{1} << 40, kMaxReads = 4096;

class DeepseekV41 final : public NamedFamily {
 public:
  DeepseekV41() : NamedFamily("deepseek_v41", {"deepseek_v41"}, {"DeepseekV41ForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
  std::span<const std::string_view> other_parts() const override {
    static constexpr std::array<std::string_view, 4> kParts{"vision.", "aligner.", "image_", "mtp."};
    return kParts;
  }
};

std::vector<uint64_t> required_list(const ConfigReader& config, const char* key, uint64_t limit) {
  if (auto values = config.counts(key, 0, limit)) return std::move(*values);
  throw config.refuse("the configuration lacks `" + config.key_path(key) + "`")
      .way_out("take config.json from the same release as the weights");
}

// One flag a layer. Error if the list names a layer that is not there or that reads no compressed entries.
std::vector<bool> parse_sources(const ConfigReader& config, const char* key, const std::vector<uint64_t>& ratios,
                                size_t layers) {
  std::vector<bool> is_source(layers, false);
  for (const uint64_t layer : required_list(config, key, kMaxLayers)) {
    if (layer >= layers || ratios[layer] == 0)
      throw config.refuse("`" + config.key_path(key) + "` names a layer that is not there or compresses nothing")
          .value("layer", layer)
          .value("num_hidden_layers", layers)
          .way_out("take config.json from the same release as the weights");
    is_source[layer] = true;
  }
  return is_source;
}

[[noreturn]] void refuse_layer(const ConfigReader& config, const char* what, size_t layer, uint64_t ratio) {
  throw config.refuse(what)
      .value("layer", layer)
      .value("compress_ratio", ratio)
      .way_out("take config.json from the same release as the weights");
}

void parse_layers(const ConfigReader& config, ModelSpec* spec) {
  const size_t layers = spec->layers.size();
  const uint64_t window = config.size({"sliding_window"}, kMaxDimension);
  const std::vector<uint64_t> ratios = required_list(config, "compress_ratios", kMaxDimension);  // drafts included
  if (ratios.size() < layers)
    throw config.refuse("`compress_ratios` has fewer entries than layers")
        .value("entries", ratios.size())
        .value("num_hidden_layers", layers)
        .way_out("take config.json from the same release as the weights");
  const std::vector<bool> keeps = parse_sources(config, "kv_source_layer_ids", ratios, layers);
  const std::vector<bool> chooses = parse_sources(config, "index_source_layer_ids", ratios, layers);
  uint64_t kept = 0;  // ratio of the nearest source
  for (size_t i = 0; i < layers; ++i) {
    const uint64_t ratio = ratios[i];
    if (keeps[i] && !chooses[i])
      refuse_layer(config, "a layer of `kv_source_layer_ids` is missing in `index_source_layer_ids`", i, ratio);
    if (keeps[i]) kept = ratio;
    if (ratio != 0 && ratio != kept)
      refuse_layer(config, "the nearest layer of `kv_source_layer_ids` keeps entries of another ratio", i, ratio);
    LayerSpec& layer = spec->layers[i];
    layer.attention = AttentionKind::kCompressed;
    layer.mlp = MlpKind::kMoe;
    layer.sliding_window = window;
    layer.compress_ratio = ratio;
    layer.indexer = chooses[i];
    layer.chosen_keys = ratio != 0;
    layer.stores_kv = layer.stores_index = keeps[i];
  }
}

void parse_engram(const ConfigReader& config, ModelSpec* spec) {
  if (!config.has("engram_layer_ids")) return;
  const std::vector<uint64_t> layers = required_list(config, "engram_layer_ids", spec->layers.size() - 1);
  const std::vector<uint64_t> rows = required_list(config, "engram_num_embeddings", kMaxRows);
  if (rows.size() != layers.size())
    throw config.refuse("`engram_num_embeddings` should have one entry a layer of `engram_layer_ids`")
        .value("entries", rows.size())
        .value("layers", layers.size())
        .way_out("take config.json from the same release as the weights");
  if (layers.empty()) return;
  // One row a head for each length from 2 tokens on.
  const uint64_t lengths = config.size({"engram_max_ngram_size"}, kMaxReads) - 1;
  const uint64_t reads = lengths * config.size({"engram_n_heads"}, kMaxReads);
  const uint64_t width = config.size({"engram_head_dim"}, kMaxDimension);
  for (size_t i = 0; i < layers.size(); ++i) spec->memory_tables.push_back({layers[i], rows[i], width, reads});
}

ModelSpec DeepseekV41::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  const ConfigReader text = config.section("text_config");
  ModelSpec spec = parse_decoder(text, "");
  spec.model_type = config.text_or({"model_type"}, "deepseek_v41");
  spec.mtp_prefix = "mtp.";
  parse_deepseek_v4_text(text, &spec);
  spec.unlisted_mtp_layers = text.count_or({"num_nextn_predict_layers"}, kMaxLayers, 0);
  parse_layers(text, &spec);
  parse_engram(text, &spec);
  // Published counts give the three compressors of ratio 2 the double width of V4's ratio 4, and the one of ratio 1 a
  // gate. Header listings of the release have neither, and its "other backbone tensors", 9.532 GB, come out only so.
  spec.published_difference = static_cast<int64_t>(7 * spec.head_dim * spec.hidden);
  return spec;
}

void add_sparse_attention(Inventory* out, const LayerSpec& layer) {
  const ModelSpec& spec = out->spec();
  const IndexerSpec& indexer = spec.indexer;
  add_deepseek_v4_attention(out);
  if (layer.stores_kv) {
    out->linear("attn.compressor.wkv", Role::kAttention, spec.head_dim, spec.hidden, Projection::kOther);
    if (layer.compress_ratio > 1)
      out->linear("attn.compressor.wgate", Role::kAttention, spec.head_dim, spec.hidden, Projection::kOther);
    out->norm("attn.compressor.norm", spec.head_dim);
    out->linear("attn.indexer.wk", Role::kAttention, indexer.head_dim, spec.head_dim, Projection::kOther);
    out->norm("attn.indexer.k_norm", indexer.head_dim);
  }
  if (!layer.indexer) return;
  out->linear("attn.indexer.wq_b", Role::kAttention, indexer.heads * indexer.head_dim, spec.q_lora_rank,
              Projection::kOther);
  out->linear("attn.indexer.weights_proj", Role::kAttention, indexer.heads, spec.hidden, Projection::kOther);
}

void add_engram(Inventory* out, const MemoryTable& table) {
  const ModelSpec& spec = out->spec();
  const uint64_t streams = spec.hyper_streams;
  out->table("engram.embed.weight", Role::kEmbedding, {table.rows, table.width});
  out->table("engram.wkv.weight", Role::kEmbedding, {(streams + 1) * spec.hidden, table.reads * table.width});
  out->table("engram.q_weight", Role::kEmbedding, {streams, spec.hidden});
  out->table("engram.k_weight", Role::kEmbedding, {streams, spec.hidden});
}

void add_moe(Inventory* out) {
  const ModelSpec& spec = out->spec();
  out->norm("ffn_norm", spec.hidden);
  out->linear("ffn.gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
  out->add("ffn.gate.bias", Role::kRouter, {spec.experts});
  out->table("ffn.gate.bias_vl", Role::kRouter, {spec.experts});  // for tokens of images
  add_deepseek_v4_experts(out);
}

void DeepseekV41::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  out.add("embed.weight", Role::kEmbedding, {spec.vocabulary, spec.hidden});
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    add_deepseek_v4_hyper_connection(&out, "hc_attn");
    add_sparse_attention(&out, spec.layers[i]);
    add_deepseek_v4_hyper_connection(&out, "hc_ffn");
    add_moe(&out);
    for (const MemoryTable& table : spec.memory_tables) {
      if (table.layer == i) add_engram(&out, table);
    }
  }
  out.leave_layers();
  out.norm("norm", spec.hidden);
  out.add("head.weight", Role::kHead, {spec.vocabulary, spec.hidden});
}

}  // namespace

const Family& deepseek_v41() {
  static const DeepseekV41 family;
  return family;
}

}  // namespace nibble::model_families
