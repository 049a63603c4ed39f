// Nemotron-H (Nemotron-3 Nano, Super and Ultra): every layer is one thing, Mamba-2, grouped-query attention without
// rotation, or MLP behind one norm. Experts have two matrices and no gate; in the large models they work in a narrower
// space between two projections.
//
// Names: transformers 5.24, nemotron_h, with "backbone." for "model." and experts one by one, as its table of renamed
// tensors says; shapes from there. An MTP step is two layers under "mtp.", attention and MoE: names from public loaders
// of the releases, shapes as the model's own layers'.
#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

class NemotronH final : public NamedFamily {
 public:
  NemotronH() : NamedFamily("nemotron_h", {"nemotron_h"}, {"NemotronHForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
};

LayerSpec layer_of(const ConfigReader& config, const std::string& kind) {
  LayerSpec layer;
  layer.attention = AttentionKind::kNone;
  layer.mlp = MlpKind::kNone;
  if (kind == "M" || kind == "mamba" || kind == "linear_attention") {
    layer.attention = AttentionKind::kLinear;
  } else if (kind == "*" || kind == "attention" || kind == "full_attention") {
    layer.attention = AttentionKind::kGqa;
  } else if (kind == "E" || kind == "moe") {
    layer.mlp = MlpKind::kMoe;
  } else if (kind == "-" || kind == "mlp") {
    layer.mlp = MlpKind::kDense;
  } else {
    throw config.refuse("a kind of layer is unknown to this family")
        .value("kind", kind)
        .way_out("use a release of nibble that knows this kind of layer");
  }
  return layer;
}

// A list of words, or a string with a letter for each layer (older files).
std::vector<LayerSpec> parse_pattern(const ConfigReader& config, const char* list_key, const char* letters_key) {
  std::vector<LayerSpec> layers;
  if (const auto kinds = config.texts(list_key, 0)) {
    for (const std::string& kind : *kinds) layers.push_back(layer_of(config, kind));
  } else {
    for (const char letter : config.text_or({letters_key}, "")) layers.push_back(layer_of(config, {letter}));
  }
  return layers;
}

void parse_layers(const ConfigReader& config, ModelSpec* spec) {
  spec->layers = parse_pattern(config, "layers_block_type", "hybrid_override_pattern");
  const uint64_t count = config.size_or({"num_hidden_layers"}, kMaxLayers, spec->layers.size());
  if (!spec->layers.empty() && count == spec->layers.size() && count <= kMaxLayers) return;
  throw config.refuse("`layers_block_type` or `hybrid_override_pattern` should name each layer once")
      .value("layers", spec->layers.size())
      .value("num_hidden_layers", count)
      .value("most", kMaxLayers)
      .way_out("take config.json from the same release as the weights");
}

// A step is attention, then MoE (also transformers' default): nothing else is released.
void parse_mtp_steps(const ConfigReader& config, ModelSpec* spec) {
  parse_mtp(config, spec);
  const auto step = parse_pattern(config, "mtp_layers_block_type", "mtp_hybrid_override_pattern");
  const bool known =
      step.empty() || (step.size() == 2 && step[0].attention == AttentionKind::kGqa && step[1].mlp == MlpKind::kMoe);
  if (spec->mtp_layers != 0 && !known)
    throw config.refuse("`mtp_layers_block_type` should be attention, then moe")
        .value("layers", step.size())
        .way_out("use a release of nibble that knows this kind of MTP");
  spec->mtp_layers *= 2;
  spec->mtp_layers_per_step = 2;
}

void parse_mamba(const ConfigReader& config, ModelSpec* spec) {
  spec->linear.heads = config.size({"mamba_num_heads"}, kMaxDimension);
  spec->linear.value_dim = config.size({"mamba_head_dim"}, kMaxDimension);
  spec->linear.key_heads = config.size({"n_groups"}, kMaxDimension);
  spec->linear.key_dim = config.size({"ssm_state_size"}, kMaxDimension);
  spec->linear.conv_kernel = config.size({"conv_kernel"}, 1024);
  const bool bias = config.flag_or({"use_bias"}, false);
  const bool conv_bias = config.flag_or({"use_conv_bias"}, true);
  if (bias || !conv_bias)
    throw config.refuse("Mamba layers should have a bias on the convolution and none on the projections")
        .value("use_bias", bias ? "true" : "false")
        .value("use_conv_bias", conv_bias ? "true" : "false")
        .way_out("use a release of nibble that knows this kind of layer");
}

void parse_latent_moe(const ConfigReader& config, ModelSpec* spec) {
  parse_experts(config, spec);
  parse_deepseek_router(config, spec);
  spec->latent = config.count_or({"moe_latent_size"}, kMaxDimension, 0);
  spec->shared_intermediate =
      spec->shared_experts == 0 ? 0 : config.size({"moe_shared_expert_intermediate_size"}, kMaxDimension);
  spec->expert_naming = {"mixer", "", "up_proj", "down_proj", Fusion::kNone, false};
  spec->activation = Activation::kOther;  // squared ReLU
}

ModelSpec NemotronH::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec;
  spec.family = name();
  spec.model_type = config.text_or({"model_type"}, "nemotron_h");
  spec.prefix = "backbone.";
  spec.mtp_prefix = "mtp.layers.";
  spec.dtype = parse_dtype(config);
  spec.hidden = config.size({"hidden_size"}, kMaxDimension);
  spec.vocabulary = config.size({"vocab_size"}, kMaxDimension);
  spec.rms_norm_eps = config.positive({"layer_norm_epsilon", "norm_eps"});
  spec.tied_embeddings = config.flag_or({"tie_word_embeddings"}, false);
  spec.max_positions = config.count_or({"max_position_embeddings"}, uint64_t{1} << 40, 0);
  parse_layers(config, &spec);
  config.require_each({"head_dim", "num_key_value_heads"});
  parse_gqa(config, &spec);
  spec.head_dim = config.size({"head_dim"}, kMaxDimension);
  spec.rope.partial_rotary_factor = 0;  // whatever rope_theta says: no implementation rotates
  parse_mamba(config, &spec);
  spec.mlp_bias = config.flag_or({"mlp_bias"}, false);
  for (const LayerSpec& layer : spec.layers) {
    if (layer.mlp == MlpKind::kDense) spec.dense_intermediate = config.size({"intermediate_size"}, kMaxDimension);
  }
  parse_latent_moe(config, &spec);
  parse_mtp_steps(config, &spec);
  return spec;
}

void add_mamba(Inventory* out) {
  const ModelSpec& spec = out->spec();
  const LinearAttentionSpec& mamba = spec.linear;
  const uint64_t inner = mamba.heads * mamba.value_dim;
  // Gate, convolved channels, time steps.
  out->linear("mixer.in_proj", Role::kAttention, inner + mamba.conv_channels() + mamba.heads, spec.hidden,
              Projection::kHeads);
  out->add("mixer.conv1d.weight", Role::kAttention, {mamba.conv_channels(), 1, mamba.conv_kernel});
  out->add("mixer.conv1d.bias", Role::kBias, {mamba.conv_channels()});
  for (const char* scalar : {"mixer.A_log", "mixer.D", "mixer.dt_bias"})
    out->add(scalar, Role::kAttention, {mamba.heads});
  out->norm("mixer.norm", inner);
  out->linear("mixer.out_proj", Role::kAttention, spec.hidden, inner, Projection::kO);
}

void add_attention(Inventory* out) {
  const ModelSpec& spec = out->spec();
  const uint64_t q = spec.heads * spec.head_dim;
  const uint64_t kv = spec.kv_heads * spec.head_dim;
  const bool bias = spec.attention_bias;
  out->linear("mixer.q_proj", Role::kAttention, q, spec.hidden, Projection::kQ, bias);
  out->linear("mixer.k_proj", Role::kAttention, kv, spec.hidden, Projection::kK, bias);
  out->linear("mixer.v_proj", Role::kAttention, kv, spec.hidden, Projection::kV, bias);
  out->linear("mixer.o_proj", Role::kAttention, spec.hidden, q, Projection::kO, bias);
}

void add_mlp(Inventory* out, const std::string& module, Role role, uint64_t intermediate) {
  const ModelSpec& spec = out->spec();
  out->linear(module + ".up_proj", role, intermediate, spec.hidden, Projection::kUp, spec.mlp_bias);
  out->linear(module + ".down_proj", role, spec.hidden, intermediate, Projection::kDown, spec.mlp_bias);
}

void add_moe(Inventory* out) {
  const ModelSpec& spec = out->spec();
  out->linear("mixer.gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
  out->add("mixer.gate.e_score_correction_bias", Role::kRouter, {spec.experts});
  if (spec.latent != 0) {
    out->linear("mixer.fc1_latent_proj", Role::kLatent, spec.latent, spec.hidden, Projection::kOther, spec.mlp_bias);
    out->linear("mixer.fc2_latent_proj", Role::kLatent, spec.hidden, spec.latent, Projection::kOther, spec.mlp_bias);
  }
  add_experts(out);
  if (spec.shared_intermediate != 0)
    add_mlp(out, "mixer.shared_experts", Role::kSharedExpert, spec.shared_intermediate);
}

// The two layers of a step: what joins the embedding and the model's output at the first, the norm of what goes to the
// head at the last.
void add_mtp_layer(Inventory* out, bool first) {
  const uint64_t hidden = out->spec().hidden;
  out->norm("norm", hidden);
  if (!first) {
    add_moe(out);
    out->norm("final_layernorm", hidden);
    return;
  }
  add_attention(out);
  out->norm("enorm", hidden);
  out->norm("hnorm", hidden);
  out->linear("eh_proj", Role::kMtp, hidden, 2 * hidden, Projection::kNone);
}

void NemotronH::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  out.add("embeddings.weight", Role::kEmbedding, {spec.vocabulary, spec.hidden});
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    out.norm("norm", spec.hidden);
    const LayerSpec& layer = spec.layers[i];
    if (layer.attention == AttentionKind::kLinear) add_mamba(&out);
    if (layer.attention == AttentionKind::kGqa) add_attention(&out);
    if (layer.mlp == MlpKind::kMoe) add_moe(&out);
    if (layer.mlp == MlpKind::kDense) add_mlp(&out, "mixer", Role::kDenseMlp, spec.dense_intermediate);
  }
  for (uint64_t i = 0; i < spec.mtp_layers; ++i) {
    out.enter_layer(static_cast<int32_t>(spec.layers.size() + i));
    add_mtp_layer(&out, i % 2 == 0);
  }
  out.leave_layers();
  out.norm("norm_f", spec.hidden);
  add_head(&out, "lm_head.weight");
}

}  // namespace

const Family& nemotron_h() {
  static const NemotronH family;
  return family;
}

}  // namespace nibble::model_families
