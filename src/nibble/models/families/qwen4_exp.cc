// Qwen4-Exp (Qwen3.8-Flash-Next): Qwen3.5's layers with an indexer on those with full attention, hyper-connections of
// low rank in place of norms, and in some layers rows of a table over n-grams of tokens, gated into the residual
// streams. Text under "model.language_model." (of a release of the text alone: "model."), a vision tower beside it, one
// MTP layer with full attention under "mtp.".
//
// Names and shapes: transformers 5.24, qwen4_exp (the table in parts by its table of renamed tensors); the MTP layer's:
// public listings of the release. Sizes of tables: as transformers derives them, the next primes for one lookup after
// the other. The n-gram block's three index tensors are kept by transformers, not known of every release: optional.
#include <array>
#include <functional>
#include <numeric>
#include <utility>

#include "nibble/models/families/linear_blocks.h"
#include "nibble/models/stacked_inventory.h"

namespace nibble::model_families {
namespace {

constexpr uint64_t kMaxLookups = 1024, kMaxParts = 65536;

class Qwen4Exp final : public NamedFamily {
 public:
  Qwen4Exp()
      : NamedFamily("qwen4_exp", {"qwen4_exp", "qwen4_exp_text"},
                    {"Qwen4ExpForConditionalGeneration", "Qwen4ExpForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
  std::span<const std::string_view> other_parts() const override {
    static constexpr std::array<std::string_view, 1> kParts{"model.visual."};
    return kParts;
  }
};

bool is_prime(uint64_t number) {
  if (number < 2 || (number != 2 && number % 2 == 0)) return false;
  for (uint64_t divisor = 3; divisor * divisor <= number; divisor += 2) {
    if (number % divisor == 0) return false;
  }
  return true;
}

// ple_layer_ids count layers from 1. Each lookup of each of them has a prime of its own, from `base` on.
void parse_tables(const ConfigReader& config, const std::vector<uint64_t>& ids, ModelSpec* spec) {
  const uint64_t base = config.size_or({"ngram_vocab_size_base"}, kMaxDimension, 20'000'000);
  const uint64_t multiple = config.size_or({"make_ngram_vocab_size_divisible_by"}, kMaxDimension, 128);
  uint64_t number = base;
  for (const uint64_t id : ids) {
    if (id == 0 || id > spec->layers.size() || spec->layers[id - 1].ngram_rows != 0)
      throw config.refuse("`ple_layer_ids` names a layer that is not there, or twice")
          .value("layer", id)
          .value("num_hidden_layers", spec->layers.size())
          .way_out("take config.json from the same release as the weights");
    uint64_t rows = 0;
    for (uint64_t lookup = 0; lookup < spec->ngram.lookups; ++number) {
      if (!is_prime(number)) continue;
      rows += number;
      ++lookup;
    }
    LayerSpec& layer = spec->layers[id - 1];
    layer.ngram_rows = (rows + multiple - 1) / multiple * multiple;
    if (layer.ngram_rows % spec->ngram.table_parts != 0)
      throw config.refuse("the rows of an n-gram table are not a multiple of its parts")
          .value("rows", layer.ngram_rows)
          .value("split_ngram_parts", spec->ngram.table_parts)
          .way_out("take config.json from the same release as the weights");
    // Its convolution keeps 9 tokens of the streams (184,320 bytes a sequence): published sizes of the cache leave the
    // n-gram block out, and so do we.
  }
}

// What is not given has transformers' defaults.
void parse_ngrams(const ConfigReader& config, ModelSpec* spec) {
  const auto ids = config.counts("ple_layer_ids", 0, kMaxLayers);
  if (!ids || ids->empty()) return;
  const uint64_t ngram = config.size_or({"ngram_size"}, 64, 3);
  const uint64_t heads = config.size_or({"heads_per_ngram"}, kMaxLookups, 8);
  const uint64_t lookups = (ngram - 1) * heads;
  const uint64_t width = config.size_or({"ple_embed_dim"}, kMaxDimension, spec->hidden);
  if (lookups == 0 || lookups * ids->size() > kMaxLookups || width % lookups != 0)
    throw config.refuse("`ple_embed_dim` does not split into as many rows as n-grams are looked up")
        .value("ple_embed_dim", width)
        .value("ngram_size", ngram)
        .value("heads_per_ngram", heads)
        .value("ple_layer_ids", ids->size())
        .way_out("take config.json from the same release as the weights");
  const uint64_t kernel = config.size_or({"ple_conv_kernel_size"}, 1024, 4);
  const uint64_t parts = config.size_or({"split_ngram_parts"}, kMaxParts / ids->size(), 512);
  spec->ngram = {ngram, lookups, width, kernel, parts};
  parse_tables(config, *ids, spec);
}

void parse_block_indexer(const ConfigReader& config, ModelSpec* spec) {
  spec->indexer.heads = config.size({"indexer_n_heads"}, kMaxDimension);
  spec->indexer.head_dim = config.size({"indexer_head_dim"}, kMaxDimension);
  // Chosen by blocks of indexer_compress_ratio tokens, whose keys are kept one by one and averaged when they are read.
  spec->indexer.topk = config.size({"indexer_budget"}, kMaxDimension);
  const uint64_t ratio = config.size({"indexer_compress_ratio"}, kMaxDimension);
  const uint64_t keys = config.size({"indexer_kv_heads"}, kMaxDimension);
  if (keys != 1 || spec->indexer.topk % ratio != 0)
    throw config.refuse("the indexer should have one key head and a budget of whole blocks")
        .value("indexer_kv_heads", keys)
        .value("indexer_budget", spec->indexer.topk)
        .value("indexer_compress_ratio", ratio)
        .way_out("take config.json from the same release as the weights");
  for (LayerSpec& layer : spec->layers) layer.indexer = layer.attention == AttentionKind::kGqa;
}

// Published counts leave out the hyper-connections and what the n-gram block has beside its table. Who counts the
// release's tensors has them: 176,943,899,520 with the table.
uint64_t mixing_parameters(const Family& family, const ModelSpec& spec) {
  uint64_t sum = 0;
  for (const ParamSpec& param : stacked_inventory(family, spec)) {
    const bool mixes =
        param.name.find("hyper_connection") != std::string::npos || param.name.find(".ple.") != std::string::npos;
    if (mixes && param.counted && param.role != Role::kMtp)
      sum += std::accumulate(param.shape.begin(), param.shape.end(), uint64_t{1}, std::multiplies<>());
  }
  return sum;
}

ModelSpec Qwen4Exp::parse(const Json& json, const std::string& source_name) const {
  constexpr double kEps = 1e-6, kTheta = 10000;  // transformers' defaults
  const ConfigReader config(json, source_name);
  const auto section = config.maybe_section("text_config");
  const ConfigReader& text = section ? *section : config;
  ModelSpec spec = parse_decoder(text, section ? "model.language_model." : "model.", kEps);
  spec.model_type = config.text_or({"model_type"}, "qwen4_exp");
  spec.mtp_prefix = "mtp.layers.";
  spec.rope = parse_rope(text, kTheta);
  text.require_each({"num_key_value_heads"});
  parse_gqa(text, &spec);
  spec.head_dim = text.size({"head_dim"}, kMaxDimension);
  spec.qk_norm = QkNorm::kPerHead;
  spec.output_gate = true;
  parse_gated_delta_net(text, &spec);
  parse_linear_layers(text, {{"indexed_attention", "qwen_sparse_attention"}}, AttentionKind::kGqa, &spec);
  parse_block_indexer(text, &spec);
  spec.hyper_streams = text.size_or({"hc_count"}, 1024, 4);
  spec.hyper_rank = text.size_or({"hc_lowrank"}, kMaxDimension, 320);
  parse_ngrams(text, &spec);
  parse_qwen_moe(text, &spec);
  spec.expert_naming.native = Fusion::kGateThenUp;
  parse_mtp(text, &spec);
  spec.published_difference = -static_cast<int64_t>(mixing_parameters(*this, spec));
  return spec;
}

// The mixing of the streams into one input; `inject`: and the weights with which the output goes back.
std::vector<std::pair<std::string, std::vector<uint64_t>>> hyper_connection(const ModelSpec& spec,
                                                                            const std::string& module, bool inject) {
  const uint64_t width = spec.hyper_streams * spec.hidden;
  std::vector<std::pair<std::string, std::vector<uint64_t>>> tensors{
      {module + ".hc_norm.weight", {width}},
      {module + ".input_mix_weight_down.weight", {spec.hyper_rank, width}},
      {module + ".input_mix_weight_up.weight", {width, spec.hyper_rank}}};
  if (inject) tensors.push_back({module + ".block_inject_weight.weight", {spec.hyper_streams, width}});
  return tensors;
}

void add_hyper_connection(Inventory* out, const std::string& module, bool inject) {
  for (auto& [name, shape] : hyper_connection(out->spec(), module, inject))
    out->add(name, Role::kNorm, std::move(shape));
}

void add_ngrams(Inventory* out, uint64_t rows) {
  const ModelSpec& spec = out->spec();
  const NgramSpec& ngram = spec.ngram;
  const uint64_t width = spec.hyper_streams * spec.hidden;
  for (uint64_t part = 0; part < ngram.table_parts; ++part)
    out->table("ple.ple_embedding.ngram_embedding.shard_" + std::to_string(part) + ".weight", Role::kEmbedding,
               {rows / ngram.table_parts, ngram.width / ngram.lookups});
  const auto index = [&](const char* name, uint64_t entries) {
    ParamSpec param;
    param.name = spec.layer_prefix(out->layer()) + "ple.ple_embedding." + name;
    param.role = Role::kEmbedding;
    param.shape = {entries};
    param.optional = true;
    param.counted = false;
    out->emit(std::move(param));
  };
  index("layer_multipliers", ngram.ngram);
  index("ngram_heads_vocab_sizes", ngram.lookups);
  index("ngram_heads_offsets", ngram.lookups);
  out->add("ple.key_proj.weight", Role::kNorm, {width, ngram.width});
  out->add("ple.value_proj.weight", Role::kNorm, {spec.hidden, ngram.width});
  for (const char* norm : {"ple.norm_key", "ple.norm_query", "ple.norm_conv"}) out->norm(norm, width);
  out->add("ple.conv1d.weight", Role::kNorm, {width, 1, ngram.conv_kernel});
}

// What stands around the MTP layers, one of each however many they are.
void add_mtp_glue(Inventory* out) {
  const ModelSpec& spec = out->spec();
  auto tensors = hyper_connection(spec, "mtp.hyper_connection_mixer", false);
  tensors.push_back({"mtp.fc_embedding.weight", {spec.hidden, spec.hidden}});
  tensors.push_back({"mtp.fc_hidden.weight", {spec.hidden, spec.hidden}});
  tensors.push_back({"mtp.pre_fc_norm_embedding.weight", {spec.hidden}});
  tensors.push_back({"mtp.pre_fc_norm_hidden.weight", {spec.hyper_streams * spec.hidden}});
  for (auto& [name, shape] : tensors) {
    ParamSpec param;
    param.name = name;
    param.shape = std::move(shape);
    out->emit(std::move(param));
  }
}

void add_indexed_gqa(Inventory* out) {
  const IndexerSpec& indexer = out->spec().indexer;
  add_gated_gqa(out);
  out->linear("self_attn.indexer.index_qk_proj", Role::kAttention, (indexer.heads + 1) * indexer.head_dim,
              out->spec().hidden, Projection::kOther);
  out->norm("self_attn.indexer.q_layernorm", indexer.head_dim);
  out->norm("self_attn.indexer.k_layernorm", indexer.head_dim);
}

void Qwen4Exp::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  const size_t layers = spec.layers.size();
  for (size_t i = 0; i < layers + spec.mtp_layers; ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    if (i == layers) add_mtp_glue(&out);
    if (i < layers && spec.layers[i].ngram_rows != 0) add_ngrams(&out, spec.layers[i].ngram_rows);
    add_hyper_connection(&out, "attn_hyper_connection", true);
    if (i < layers && spec.layers[i].attention == AttentionKind::kLinear) {
      add_gated_delta_net(&out, false);
    } else {
      add_indexed_gqa(&out);
    }
    add_hyper_connection(&out, "mlp_hyper_connection", true);
    add_qwen_moe(&out);
  }
  out.leave_layers();
  add_hyper_connection(&out, "hyper_connection_mixer", false);
  add_head(&out, "lm_head.weight");
}

}  // namespace

const Family& qwen4_exp() {
  static const Qwen4Exp family;
  return family;
}

}  // namespace nibble::model_families
