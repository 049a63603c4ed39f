#include "nibble/models/families/common_config.h"

#include <algorithm>

namespace nibble {
namespace {

constexpr uint64_t kMaxPositions = uint64_t{1} << 40;

MlpKind parse_mlp_kind(const ConfigReader& config, const std::string& name) {
  if (name == "dense") return MlpKind::kDense;
  if (name == "sparse" || name == "moe") return MlpKind::kMoe;
  throw config.refuse("an entry of `mlp_layer_types` is unknown")
      .value("entry", name)
      .way_out("use a release of nibble that knows this kind of layer");
}

// All layers that hold experts, MTP's included: what an inventory lists.
void bound_layer_experts(const ConfigReader& config, const ModelSpec& spec) {
  if (spec.experts * (spec.layers.size() + spec.mtp_layers) <= kMaxLayerExperts) return;
  throw config.refuse("layers times experts is out of range")
      .value("num_hidden_layers", spec.layers.size())
      .value("num_nextn_predict_layers", spec.mtp_layers)
      .value("num_experts", spec.experts)
      .value("most", kMaxLayerExperts)
      .way_out("take config.json from the same release as the weights");
}

}  // namespace

Element parse_dtype(const ConfigReader& config) {
  std::string name = config.text_or({"torch_dtype", "dtype"}, "bfloat16");
  if (name.rfind("torch.", 0) == 0) name = name.substr(6);
  if (name == "bfloat16" || name == "auto") return Element::kBF16;
  if (name == "float16") return Element::kF16;
  if (name == "float32") return Element::kF32;
  if (name == "float64") return Element::kF64;
  throw config.refuse("`torch_dtype` names no float type of 16 to 64 bits")
      .value("torch_dtype", name)
      .way_out("state the type of the unquantized tensors, bfloat16 for most releases");
}

ModelSpec NamedFamily::parse_decoder(const ConfigReader& config, std::string_view prefix, double default_eps) const {
  ModelSpec spec;
  spec.family = name();
  spec.model_type = config.text_or({"model_type"}, std::string(name()));
  spec.prefix = prefix;
  spec.dtype = parse_dtype(config);
  spec.hidden = config.size({"hidden_size"}, kMaxDimension);
  spec.vocabulary = config.size({"vocab_size"}, kMaxDimension);
  spec.layers.resize(config.size({"num_hidden_layers"}, kMaxLayers));
  spec.rms_norm_eps = default_eps > 0 ? config.positive_or({"rms_norm_eps", "layernorm_epsilon"}, default_eps)
                                      : config.positive({"rms_norm_eps", "layernorm_epsilon"});
  spec.tied_embeddings = config.flag_or({"tie_word_embeddings"}, false);
  // Two names of one thing: Kimi-Linear's configurations have the second.
  spec.max_positions = config.size_or({"max_position_embeddings", "model_max_length"}, kMaxPositions, 0);
  return spec;
}

RopeSpec parse_rope(const ConfigReader& config, double default_theta) {
  RopeSpec rope;
  const auto parameters = config.maybe_section("rope_parameters");
  const auto scaling = parameters ? parameters : config.maybe_section("rope_scaling");
  const ConfigReader& with_theta = parameters ? *parameters : config;
  rope.theta =
      default_theta > 0 ? with_theta.positive_or({"rope_theta"}, default_theta) : with_theta.positive({"rope_theta"});
  rope.partial_rotary_factor =
      with_theta.positive_or({"partial_rotary_factor"}, config.positive_or({"partial_rotary_factor"}, 1));
  if (scaling) parse_rope_scaling(*scaling, &rope);
  return rope;
}

void parse_rope_scaling(const ConfigReader& scaling, RopeSpec* rope) {
  rope->scaling = scaling.text_or({"rope_type", "type"}, "");
  if (rope->scaling == "default") rope->scaling.clear();
  if (rope->scaling.empty()) return;
  const bool needs_original = rope->scaling == "yarn" || rope->scaling == "llama3";
  // Other kinds (longrope) give lists instead.
  const bool needs_factor = needs_original || rope->scaling == "linear" || rope->scaling == "dynamic";
  rope->factor = needs_factor ? scaling.positive({"factor"}) : scaling.positive_or({"factor"}, 1);
  rope->beta_fast = scaling.positive_or({"beta_fast"}, 32);
  rope->beta_slow = scaling.positive_or({"beta_slow"}, 1);
  rope->mscale = scaling.not_negative_or({"mscale"}, 0);
  rope->mscale_all_dim = scaling.not_negative_or({"mscale_all_dim"}, 0);
  rope->low_freq_factor = scaling.positive_or({"low_freq_factor"}, 1);
  rope->high_freq_factor = scaling.positive_or({"high_freq_factor"}, 4);
  rope->attention_factor = scaling.positive_or({"attention_factor"}, 0);
  rope->truncate = scaling.flag_or({"truncate"}, true);
  rope->original_max_position = needs_original
                                    ? scaling.size({"original_max_position_embeddings"}, kMaxPositions)
                                    : scaling.size_or({"original_max_position_embeddings"}, kMaxPositions, 0);
}

void check_head_groups(const ConfigReader& config, const char* heads_key, uint64_t heads, const char* kv_heads_key,
                       uint64_t kv_heads) {
  if (heads % kv_heads == 0) return;
  throw config.refuse("query heads are not a multiple of key/value heads")
      .value(heads_key, heads)
      .value(kv_heads_key, kv_heads)
      .way_out("take config.json from the same release as the weights");
}

void parse_gqa(const ConfigReader& config, ModelSpec* spec) {
  spec->heads = config.size({"num_attention_heads"}, kMaxDimension);
  spec->kv_heads = config.size_or({"num_key_value_heads", "num_attention_groups"}, kMaxDimension, spec->heads);
  check_head_groups(config, "num_attention_heads", spec->heads, "num_key_value_heads", spec->kv_heads);
  if (!config.has("head_dim") && spec->hidden % spec->heads != 0)
    throw config.refuse("hidden_size is not a multiple of the heads, and head_dim is not given")
        .value("hidden_size", spec->hidden)
        .value("num_attention_heads", spec->heads)
        .way_out("state head_dim");
  spec->head_dim = config.size_or({"head_dim"}, kMaxDimension, spec->hidden / spec->heads);
  spec->attention_bias = config.flag_or({"attention_bias", "qkv_bias"}, false);
}

void parse_mla(const ConfigReader& config, ModelSpec* spec) {
  spec->heads = config.size({"num_attention_heads"}, kMaxDimension);
  spec->kv_heads = config.size_or({"num_key_value_heads"}, kMaxDimension, spec->heads);
  spec->q_lora_rank = config.count_or({"q_lora_rank"}, kMaxDimension, 0);  // null: queries without a bottleneck
  spec->kv_lora_rank = config.size({"kv_lora_rank"}, kMaxDimension);
  spec->qk_nope_head_dim = config.size({"qk_nope_head_dim"}, kMaxDimension);
  spec->qk_rope_head_dim = config.count({"qk_rope_head_dim"}, kMaxDimension);
  spec->v_head_dim = config.size({"v_head_dim"}, kMaxDimension);
  spec->head_dim = spec->qk_nope_head_dim + spec->qk_rope_head_dim;
  spec->attention_bias = config.flag_or({"attention_bias"}, false);
  for (auto& layer : spec->layers) layer.attention = AttentionKind::kMla;
}

void parse_indexer(const ConfigReader& config, ModelSpec* spec) {
  spec->indexer.heads = config.size({"index_n_heads"}, kMaxDimension);
  spec->indexer.head_dim = config.size({"index_head_dim"}, kMaxDimension);
  spec->indexer.topk = config.size({"index_topk"}, kMaxDimension);
}

void parse_experts(const ConfigReader& config, ModelSpec* spec) {
  spec->experts = config.size({"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"}, kMaxExperts);
  spec->experts_per_token =
      config.size({"num_experts_per_tok", "num_experts_per_token", "moe_top_k", "top_k_experts"}, kMaxExperts);
  if (spec->experts_per_token > spec->experts)
    throw config.refuse("more experts a token than experts")
        .value("num_experts_per_tok", spec->experts_per_token)
        .value("num_experts", spec->experts)
        .way_out("take config.json from the same release as the weights");
  bound_layer_experts(config, *spec);
}

void parse_deepseek_router(const ConfigReader& config, ModelSpec* spec) {
  spec->router = RouterKind::kSigmoidBias;
  spec->expert_intermediate = config.size({"moe_intermediate_size"}, kMaxDimension);
  config.require_one({"n_shared_experts", "num_shared_experts"});
  spec->shared_experts = config.count_or({"n_shared_experts", "num_shared_experts"}, kMaxExperts, 0);
  spec->shared_intermediate = spec->shared_experts * spec->expert_intermediate;
  spec->n_group = config.count_or({"n_group", "num_expert_group"}, kMaxExperts, 0);
  spec->topk_group = config.count_or({"topk_group"}, kMaxExperts, 0);
  spec->routed_scaling_factor = config.positive_or({"routed_scaling_factor"}, 1);
  spec->norm_topk_prob = config.flag_or({"norm_topk_prob", "moe_renormalize"}, true);
}

void parse_dense_first(const ConfigReader& config, ModelSpec* spec, std::optional<uint64_t> default_first) {
  if (!default_first && !config.has("mlp_layer_types")) config.require_each({"first_k_dense_replace"});
  const uint64_t first = config.count_or({"first_k_dense_replace"}, kMaxLayers, default_first.value_or(0));
  const uint64_t every = config.size_or({"moe_layer_freq"}, kMaxLayers, 1);
  for (uint64_t i = 0; i < spec->layers.size(); ++i)
    spec->layers[i].mlp = i >= first && i % every == 0 ? MlpKind::kMoe : MlpKind::kDense;
  if (const auto kinds = config.texts("mlp_layer_types", spec->layers.size())) {
    for (uint64_t i = 0; i < kinds->size(); ++i) spec->layers[i].mlp = parse_mlp_kind(config, (*kinds)[i]);
  }
  const bool any_dense = std::any_of(spec->layers.begin(), spec->layers.end(),
                                     [](const LayerSpec& layer) { return layer.mlp == MlpKind::kDense; });
  spec->dense_intermediate = any_dense ? config.size({"intermediate_size"}, kMaxDimension)
                                       : config.count_or({"intermediate_size"}, kMaxDimension, 0);
}

void parse_sparse_step(const ConfigReader& config, ModelSpec* spec) {
  const uint64_t step = config.size_or({"decoder_sparse_step"}, kMaxLayers, 1);
  for (uint64_t i = 0; i < spec->layers.size(); ++i)
    spec->layers[i].mlp = (i + 1) % step == 0 ? MlpKind::kMoe : MlpKind::kDense;
  for (const uint64_t layer : config.counts("mlp_only_layers", 0, kMaxLayers).value_or(std::vector<uint64_t>{})) {
    if (layer < spec->layers.size()) spec->layers[layer].mlp = MlpKind::kDense;
  }
  spec->dense_intermediate = config.count_or({"intermediate_size"}, kMaxDimension, 0);
  for (const LayerSpec& layer : spec->layers) {
    if (layer.mlp == MlpKind::kDense) spec->dense_intermediate = config.size({"intermediate_size"}, kMaxDimension);
  }
}

bool parse_moe_list(const ConfigReader& config, const char* dense_key, ModelSpec* spec) {
  const auto moe = config.counts("moe_layer_freq", spec->layers.size(), 1);
  if (!moe) return false;
  for (uint64_t i = 0; i < moe->size(); ++i) {
    spec->layers[i].mlp = (*moe)[i] != 0 ? MlpKind::kMoe : MlpKind::kDense;
    if ((*moe)[i] == 0) spec->dense_intermediate = config.size({dense_key}, kMaxDimension);
  }
  return true;
}

bool parse_sliding_layers(const ConfigReader& config, uint64_t window, ModelSpec* spec) {
  const auto kinds = config.texts("layer_types", spec->layers.size());
  if (!kinds) return false;
  for (uint64_t i = 0; i < kinds->size(); ++i) {
    const std::string& kind = (*kinds)[i];
    if (kind == "full_attention") continue;
    if (kind != "sliding_attention")
      throw config.refuse("an entry of `layer_types` is unknown to this family")
          .value("layer", i)
          .value("entry", kind)
          .way_out("use a release of nibble that knows this kind of layer");
    if (window == 0)
      throw config.refuse("a layer slides, but `sliding_window` is not given")
          .value("layer", i)
          .way_out("take config.json from the same release as the weights");
    spec->layers[i].sliding_window = window;
  }
  return true;
}

void parse_mtp(const ConfigReader& config, ModelSpec* spec) {
  spec->mtp_layers =
      config.count_or({"num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers"}, kMaxLayers, 0);
  bound_layer_experts(config, *spec);
}

}  // namespace nibble
