// Inkling: grouped-query attention with a learned bias by distance instead of rotation; five layers that slide over 512
// tokens, with more key heads, to one over everything; short convolutions behind keys, values, attention and MLP; a
// sigmoid router that weighs shared experts together with the chosen ones; gate and up in one matrix, row by row; first
// layers dense. Its MTP layers are dense too. Vision and audio beside it. For inventories and counts only.
//
// Names and shapes: transformers 5.24, inkling, by its mapping from the release's names (model.llm.…, wq_du, w13_dn);
// MTP layers from that mapping and public lists of a release's headers. The head has as many rows as
// unpadded_vocab_size, the embedding as vocab_size.
#include <algorithm>
#include <array>

#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

class Inkling final : public NamedFamily {
 public:
  Inkling() : NamedFamily("inkling", {"inkling_mm_model"}, {"InklingForConditionalGeneration"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
  std::span<const std::string_view> other_parts() const override {
    static constexpr std::array<std::string_view, 2> kParts{"model.visual.", "model.audio."};
    return kParts;
  }
};

// Switches that decide about tensors: only the published setting is known.
void check_switches(const ConfigReader& text, const ConfigReader* mtp) {
  const auto check = [](const ConfigReader& config, const char* key, bool known) {
    if (config.flag_or({key}, known) == known) return;
    throw config.refuse("a setting with which this family's tensors are not known")
        .value(config.key_path(key), known ? "false" : "true")
        .way_out("use a release of nibble that knows this setting");
  };
  for (const char* key : {"use_embed_norm", "use_sconv", "use_gate_bias", "use_global_scale", "shared_expert_sink"})
    check(text, key, true);
  for (const char* key : {"q_bias", "o_bias"}) check(text, key, false);
  check(mtp != nullptr ? *mtp : text, "chain_hidden_post_norm", false);
}

// Windows of `layers` layers: those that `key` lists slide.
std::vector<uint64_t> parse_windows(const ConfigReader& config, const char* key, size_t layers, uint64_t window) {
  std::vector<uint64_t> windows(layers, 0);
  for (const uint64_t layer : config.counts(key, 0, kMaxLayers).value_or(std::vector<uint64_t>{})) {
    if (layer >= layers)
      throw config.refuse("`" + config.key_path(key) + "` names a layer that is not there")
          .value("layer", layer)
          .value("layers", layers)
          .way_out("take config.json from the same release as the weights");
    windows[layer] = window;
  }
  return windows;
}

void parse_attention(const ConfigReader& text, ModelSpec* spec) {
  text.require_each(
      {"num_key_value_heads", "head_dim", "swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim"});
  parse_gqa(text, spec);
  spec->qk_norm = QkNorm::kPerHead;
  AttentionShape& sliding = spec->sliding;
  sliding.heads = text.size({"swa_num_attention_heads"}, kMaxDimension);
  sliding.kv_heads = text.size({"swa_num_key_value_heads"}, kMaxDimension);
  sliding.head_dim = text.size({"swa_head_dim"}, kMaxDimension);
  sliding.v_head_dim = sliding.head_dim;
  check_head_groups(text, "swa_num_attention_heads", sliding.heads, "swa_num_key_value_heads", sliding.kv_heads);
  spec->relative_bias = {text.size({"d_rel"}, kMaxDimension), text.size({"rel_extent"}, kMaxDimension)};
  spec->conv_kernel = text.size({"sconv_kernel_size", "conv_kernel_size"}, 1024);
}

// Behind attention and MLP a convolution is as wide as the model, behind keys and values as these.
void parse_layers(const ConfigReader& text, ModelSpec* spec) {
  const uint64_t window = text.size({"sliding_window_size", "sliding_window"}, kMaxDimension);
  const size_t layers = spec->layers.size();
  if (!text.has("local_layer_ids"))
    throw text.refuse("the configuration lacks `" + text.key_path("local_layer_ids") + "`")
        .way_out("take config.json from the same release as the weights");
  const std::vector<uint64_t> windows = parse_windows(text, "local_layer_ids", layers, window);
  // A file that does not say it has no dense layers, as in transformers.
  const uint64_t dense = std::min<uint64_t>(layers, text.count_or({"dense_mlp_idx"}, kMaxLayers, 0));
  for (size_t i = 0; i < layers; ++i) {
    LayerSpec& layer = spec->layers[i];
    layer.sliding_window = windows[i];
    layer.mlp = i < dense ? MlpKind::kDense : MlpKind::kMoe;
    layer.rotary = false;
    const AttentionShape shape = spec->attention_shape(layer);
    layer.conv_state = 2 * (spec->hidden + shape.kv_heads * shape.head_dim) * (spec->conv_kernel - 1);
  }
}

void parse_mtp_layers(const ConfigReader& config, const ConfigReader& text, ModelSpec* spec) {
  spec->mtp_prefix = "model.mtp.layers.";
  const auto section = config.maybe_section("mtp_config");
  check_switches(text, section ? &*section : nullptr);
  parse_mtp(section ? *section : text, spec);
  if (spec->mtp_layers == 0) return;
  const uint64_t window = text.size({"sliding_window_size", "sliding_window"}, kMaxDimension);
  // A file that does not list them means that all MTP layers attend over everything, as in transformers.
  spec->mtp_windows = section ? parse_windows(*section, "local_layer_ids", spec->mtp_layers, window)
                              : parse_windows(text, "mtp_local_layer_ids", spec->mtp_layers, window);
}

ModelSpec Inkling::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  const ConfigReader text = config.section("text_config");
  ModelSpec spec = parse_decoder(text, "model.llm.");
  spec.model_type = config.text_or({"model_type"}, "inkling_mm_model");
  spec.head_vocabulary = text.size_or({"unpadded_vocab_size"}, spec.vocabulary, spec.vocabulary);
  parse_attention(text, &spec);
  parse_layers(text, &spec);
  parse_experts(text, &spec);
  parse_mtp_layers(config, text, &spec);
  spec.router = RouterKind::kOther;
  spec.routed_scaling_factor = text.positive_or({"route_scale"}, 8);  // as transformers
  spec.expert_intermediate = text.size({"intermediate_size", "moe_intermediate_size"}, kMaxDimension);
  spec.shared_experts = text.size({"n_shared_experts"}, kMaxExperts);
  spec.shared_intermediate = spec.shared_experts * spec.expert_intermediate;
  spec.dense_intermediate = text.size({"dense_intermediate_size"}, kMaxDimension);
  spec.expert_naming.native = Fusion::kInterleaved;
  spec.expert_naming.stacks.gate_up = "mlp.experts.w13_weight";
  spec.expert_naming.stacks.down = "mlp.experts.w2_weight";
  return spec;
}

// `block` goes before names: MTP's stand one level deeper.
void add_attention(Inventory* out, const std::string& block, uint64_t window) {
  const ModelSpec& spec = out->spec();
  LayerSpec layer;
  layer.sliding_window = window;
  const AttentionShape shape = spec.attention_shape(layer);
  const uint64_t q = shape.heads * shape.head_dim, kv = shape.kv_heads * shape.head_dim;
  const RelativeBiasSpec& bias = spec.relative_bias;
  out->norm(block + "attn_norm", spec.hidden);
  out->linear(block + "attn.wq_du", Role::kAttention, q, spec.hidden, Projection::kQ);
  out->linear(block + "attn.wk_dv", Role::kAttention, kv, spec.hidden, Projection::kK);
  out->linear(block + "attn.wv_dv", Role::kAttention, kv, spec.hidden, Projection::kV);
  out->linear(block + "attn.wr_du", Role::kAttention, shape.heads * bias.width, spec.hidden, Projection::kHeads);
  out->linear(block + "attn.wo_ud", Role::kAttention, spec.hidden, q, Projection::kO);
  out->norm(block + "attn.q_norm", shape.head_dim);
  out->norm(block + "attn.k_norm", shape.head_dim);
  out->add(block + "attn.k_sconv.weight", Role::kAttention, {kv, 1, spec.conv_kernel});
  out->add(block + "attn.v_sconv.weight", Role::kAttention, {kv, 1, spec.conv_kernel});
  out->add(block + "attn.rel_logits_proj.proj", Role::kAttention, {bias.width, window != 0 ? window : bias.extent});
  out->add(block + "attn_sconv.weight", Role::kAttention, {spec.hidden, 1, spec.conv_kernel});
}

void add_dense_mlp(Inventory* out, const std::string& block) {
  const ModelSpec& spec = out->spec();
  out->linear(block + "mlp.w13_dn", Role::kDenseMlp, 2 * spec.dense_intermediate, spec.hidden, Projection::kGateUp);
  out->linear(block + "mlp.w2_md", Role::kDenseMlp, spec.hidden, spec.dense_intermediate, Projection::kDown);
  out->add(block + "mlp.global_scale", Role::kDenseMlp, {1});
}

void add_moe(Inventory* out) {
  const ModelSpec& spec = out->spec();
  const uint64_t shared = spec.shared_experts, width = spec.expert_intermediate;
  out->linear("mlp.gate", Role::kRouter, spec.experts + shared, spec.hidden, Projection::kNone);
  out->add("mlp.gate.bias", Role::kRouter, {spec.experts});
  out->add("mlp.gate.global_scale", Role::kRouter, {1});
  add_experts(out);
  const std::string module = "mlp.shared_experts.shared_";
  out->add(module + "w13_weight", Role::kSharedExpert, {shared, 2 * width, spec.hidden}, Projection::kGateUp);
  out->add(module + "w2_weight", Role::kSharedExpert, {shared, spec.hidden, width}, Projection::kDown);
}

// The convolution behind the MLP, with the MLP's norm.
void add_mlp_frame(Inventory* out, const std::string& block) {
  const ModelSpec& spec = out->spec();
  out->norm(block + "mlp_norm", spec.hidden);
  out->add(block + "mlp_sconv.weight", Role::kAttention, {spec.hidden, 1, spec.conv_kernel});
}

void add_mtp_layer(Inventory* out, uint64_t window) {
  const ModelSpec& spec = out->spec();
  const std::string block = "transformer_block.";
  out->norm("embed_norm", spec.hidden);
  out->norm("hidden_norm", spec.hidden);
  out->linear("input_proj", Role::kMtp, spec.hidden, 2 * spec.hidden, Projection::kNone);
  add_attention(out, block, window);
  add_mlp_frame(out, block);
  add_dense_mlp(out, block);
}

void Inkling::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  out.add("embed.weight", Role::kEmbedding, {spec.vocabulary, spec.hidden});
  out.norm("embed_norm", spec.hidden);
  const size_t layers = spec.layers.size();
  for (size_t i = 0; i < layers; ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    add_attention(&out, "", spec.layers[i].sliding_window);
    add_mlp_frame(&out, "");
    if (spec.layers[i].mlp == MlpKind::kDense) {
      add_dense_mlp(&out, "");
    } else {
      add_moe(&out);
    }
  }
  for (size_t i = 0; i < spec.mtp_layers; ++i) {
    out.enter_layer(static_cast<int32_t>(layers + i));
    add_mtp_layer(&out, i < spec.mtp_windows.size() ? spec.mtp_windows[i] : 0);
  }
  out.leave_layers();
  out.norm("norm", spec.hidden);
  out.add("unembed.weight", Role::kHead, {spec.head_vocabulary, spec.hidden});
}

}  // namespace

const Family& inkling() {
  static const Inkling family;
  return family;
}

}  // namespace nibble::model_families
