// MiniMax-M3: grouped-query attention with norms over each query and key head, half of each head rotated; in the MoE
// layers an indexer, whose keys a token keeps beside its own, chooses the blocks of keys that attention reads. Sigmoid
// router, a shared expert, first layers dense, clamped SwiGLU. Text under "language_model.", a vision tower and its
// projectors beside it. For inventories and counts only: norm weights are stored less one.
//
// Names: transformers 5.24, minimax_m3_vl, by its mapping from the release's names; shapes are the same there. The
// configuration declares MTP modules, but no release that was looked at stores them: they are not listed.
#include <array>

#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

class MinimaxM3 final : public NamedFamily {
 public:
  MinimaxM3() : NamedFamily("minimax_m3", {"minimax_m3_vl"}, {"MiniMaxM3SparseForConditionalGeneration"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
  std::span<const std::string_view> other_parts() const override {
    static constexpr std::array<std::string_view, 3> kParts{"vision_tower.", "multi_modal_projector.",
                                                            "patch_merge_mlp."};
    return kParts;
  }
};

[[noreturn]] void refuse_kind(const ConfigReader& config, const char* key, const std::string& kind) {
  throw config.refuse("a kind that this family does not have")
      .value(config.key_path(key), kind)
      .way_out("use a release of nibble that knows this kind");
}

void parse_sparse_attention(const ConfigReader& text, ModelSpec* spec) {
  const ConfigReader sparse = text.section("sparse_attention_config");
  if (!sparse.flag_or({"use_sparse_attention"}, true)) refuse_kind(sparse, "use_sparse_attention", "false");
  spec->indexer.heads = sparse.size({"sparse_num_index_heads"}, kMaxDimension);
  spec->indexer.head_dim = sparse.size({"sparse_index_dim"}, kMaxDimension);
  spec->indexer.topk = sparse.size({"sparse_topk_blocks"}, kMaxDimension);
  spec->indexer.block = sparse.size({"sparse_block_size"}, kMaxDimension);
  const size_t layers = spec->layers.size();
  const auto indexed = sparse.counts("sparse_attention_freq", layers, 1);
  if (!indexed)
    throw sparse.refuse("the configuration lacks `" + sparse.key_path("sparse_attention_freq") + "`")
        .way_out("take config.json from the same release as the weights");
  const auto without_value = sparse.counts("sparse_disable_index_value", layers, 1);
  for (size_t i = 0; i < layers; ++i) {
    spec->layers[i].indexer = (*indexed)[i] != 0;
    if (spec->layers[i].indexer && without_value && (*without_value)[i] == 0)
      throw sparse.refuse("an indexer with values of its own, whose tensors are not known")
          .value(sparse.key_path("sparse_disable_index_value"), "0")
          .value("layer", i)
          .way_out("use a release of nibble that knows this kind of layer");
  }
}

void parse_rotation(const ConfigReader& text, ModelSpec* spec) {
  spec->rope = parse_rope(text, 5e6);  // as transformers
  const uint64_t rotary = text.count_or({"rotary_dim"}, spec->head_dim, 0);
  if (rotary == 0) return;
  const double factor = static_cast<double>(rotary) / static_cast<double>(spec->head_dim);
  if (text.has("partial_rotary_factor") && factor != spec->rope.partial_rotary_factor)
    throw text.refuse("two spellings of one key disagree")
        .value(text.key_path("rotary_dim"), rotary)
        .value(text.key_path("partial_rotary_factor"), spec->rope.partial_rotary_factor)
        .way_out("delete the one that is wrong");
  spec->rope.partial_rotary_factor = factor;
}

ModelSpec MinimaxM3::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  const ConfigReader text = config.section("text_config");
  ModelSpec spec = parse_decoder(text, "language_model.model.");
  spec.model_type = config.text_or({"model_type"}, "minimax_m3_vl");
  text.require_each({"head_dim", "num_key_value_heads"});
  parse_gqa(text, &spec);
  parse_rotation(text, &spec);
  spec.qk_norm = text.flag_or({"use_qk_norm"}, true) ? QkNorm::kPerHead : QkNorm::kNone;
  const std::string norm = text.text_or({"qk_norm_type"}, "per_head");
  if (norm != "per_head") refuse_kind(text, "qk_norm_type", norm);
  if (text.flag_or({"attention_output_gate"}, false)) refuse_kind(text, "attention_output_gate", "true");
  const std::string scores = text.text_or({"scoring_func"}, "sigmoid");
  if (scores != "sigmoid") refuse_kind(text, "scoring_func", scores);
  if (!text.flag_or({"use_routing_bias"}, true)) refuse_kind(text, "use_routing_bias", "false");
  parse_experts(text, &spec);
  spec.router = RouterKind::kSigmoidBias;
  spec.norm_topk_prob = true;
  spec.routed_scaling_factor = text.positive_or({"routed_scaling_factor"}, 2);  // as transformers
  spec.expert_intermediate = text.size({"intermediate_size"}, kMaxDimension);
  spec.shared_experts = text.count_or({"n_shared_experts"}, kMaxExperts, 1);
  if (spec.shared_experts != 0)
    spec.shared_intermediate = spec.shared_experts * text.size({"shared_intermediate_size"}, kMaxDimension);
  spec.expert_naming = {"block_sparse_moe", "w1", "w3", "w2"};
  if (!parse_moe_list(text, "dense_intermediate_size", &spec))
    throw text.refuse("the configuration lacks `" + text.key_path("moe_layer_freq") + "`")
        .way_out("take config.json from the same release as the weights");
  parse_sparse_attention(text, &spec);
  spec.activation = Activation::kClampedSwiglu;
  spec.swiglu_alpha = text.positive_or({"swiglu_alpha"}, 1.702);
  spec.swiglu_limit = text.positive_or({"swiglu_limit"}, 7);
  spec.unlisted_mtp_layers = text.count_or({"num_mtp_modules"}, kMaxLayers, 0);
  return spec;
}

void add_moe(Inventory* out) {
  const ModelSpec& spec = out->spec();
  const std::string moe = "block_sparse_moe";
  out->linear(moe + ".gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
  out->add(moe + ".e_score_correction_bias", Role::kRouter, {spec.experts});
  add_experts(out);
  if (spec.shared_intermediate != 0)
    add_gated_mlp(out, moe + ".shared_experts", Role::kSharedExpert, spec.shared_intermediate);
}

void MinimaxM3::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    out.norm("input_layernorm", spec.hidden);
    add_gqa(&out, spec.attention_bias);
    if (spec.layers[i].indexer) {
      const uint64_t width = spec.indexer.head_dim;
      out.linear("self_attn.index_q_proj", Role::kAttention, spec.indexer.heads * width, spec.hidden,
                 Projection::kOther);
      out.linear("self_attn.index_k_proj", Role::kAttention, width, spec.hidden, Projection::kOther);
      out.norm("self_attn.index_q_norm", width);
      out.norm("self_attn.index_k_norm", width);
    }
    out.norm("post_attention_layernorm", spec.hidden);
    if (spec.layers[i].mlp == MlpKind::kDense) {
      add_gated_mlp(&out, "mlp", Role::kDenseMlp, spec.dense_intermediate);
    } else {
      add_moe(&out);
    }
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& minimax_m3() {
  static const MinimaxM3 family;
  return family;
}

}  // namespace nibble::model_families
