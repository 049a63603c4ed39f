// Llama-4 (Scout, Maverick): grouped-query attention within blocks of 8192 tokens, and over everything, without
// rotation, in every fourth layer; sigmoid router whose score multiplies the expert's input, a shared expert, dense
// layers between MoE layers in some; experts fused, gate then up, and transposed, (E, H, 2I). Text under
// "language_model.", a vision model and its projector beside it. For inventories and counts only: the norms of queries
// and keys have no weights.
//
// Names and shapes: transformers 5.24, llama4, whose names are the release's.
#include <array>

#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

class Llama4 final : public NamedFamily {
 public:
  Llama4() : NamedFamily("llama4", {"llama4"}, {"Llama4ForConditionalGeneration"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
  std::span<const std::string_view> other_parts() const override {
    static constexpr std::array<std::string_view, 2> kParts{"vision_model.", "multi_modal_projector."};
    return kParts;
  }
};

// Layers that rotate attend within their block, the others over everything. Defaults: transformers.
void parse_attention_kinds(const ConfigReader& text, ModelSpec* spec) {
  const size_t layers = spec->layers.size();
  const uint64_t every = text.size_or({"no_rope_layer_interval"}, kMaxLayers, 4);
  // 1 means that the layer rotates, whatever the key's name; an empty list counts as none.
  auto rotary = text.counts("no_rope_layers", 0, 1).value_or(std::vector<uint64_t>{});
  if (rotary.empty()) {
    for (uint64_t i = 0; i < layers; ++i) rotary.push_back((i + 1) % every != 0 ? 1 : 0);
  }
  if (rotary.size() < layers)
    throw text.refuse("`" + text.key_path("no_rope_layers") + "` has fewer entries than layers")
        .value("entries", rotary.size())
        .value("num_hidden_layers", layers)
        .way_out("take config.json from the same release as the weights");
  const uint64_t chunk = text.size({"attention_chunk_size"}, kMaxDimension);
  for (size_t i = 0; i < layers; ++i) {
    LayerSpec& layer = spec->layers[i];
    layer.rotary = rotary[i] != 0;
    layer.chunked = layer.rotary;
    layer.sliding_window = layer.rotary ? chunk : 0;
  }
  const auto kinds = text.texts("layer_types", layers);
  for (size_t i = 0; kinds && i < layers; ++i) {
    if ((*kinds)[i] != (spec->layers[i].chunked ? "chunked_attention" : "full_attention"))
      throw text.refuse("`" + text.key_path("layer_types") + "` and the layers without rotation disagree")
          .value("layer", i)
          .value("entry", (*kinds)[i])
          .way_out("take config.json from the same release as the weights");
  }
}

// moe_layers by number, or every interleave_moe_layer_step-th layer.
void parse_moe_layers(const ConfigReader& text, ModelSpec* spec) {
  const uint64_t step = text.size_or({"interleave_moe_layer_step"}, kMaxLayers, 1);
  if (const auto listed = text.counts("moe_layers", 0, kMaxLayers)) {
    for (const uint64_t layer : *listed) {
      if (layer >= spec->layers.size())
        throw text.refuse("`" + text.key_path("moe_layers") + "` names a layer that is not there")
            .value("layer", layer)
            .value("num_hidden_layers", spec->layers.size())
            .way_out("take config.json from the same release as the weights");
      spec->layers[layer].mlp = MlpKind::kMoe;
    }
  } else {
    for (uint64_t i = step - 1; i < spec->layers.size(); i += step) spec->layers[i].mlp = MlpKind::kMoe;
  }
  for (const LayerSpec& layer : spec->layers) {
    if (layer.mlp == MlpKind::kDense) spec->dense_intermediate = text.size({"intermediate_size_mlp"}, kMaxDimension);
  }
}

ModelSpec Llama4::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  const ConfigReader text = config.section("text_config");
  ModelSpec spec = parse_decoder(text, "language_model.model.");
  spec.model_type = config.text_or({"model_type"}, "llama4");
  spec.rope = parse_rope(text, 500000);  // as transformers
  spec.rope.interleaved = true;
  text.require_each({"head_dim", "num_key_value_heads"});
  parse_gqa(text, &spec);
  parse_attention_kinds(text, &spec);
  parse_experts(text, &spec);
  spec.router = RouterKind::kOther;
  spec.expert_intermediate = text.size({"intermediate_size"}, kMaxDimension);
  spec.shared_experts = 1;
  spec.shared_intermediate = spec.expert_intermediate;
  spec.expert_naming.block = "feed_forward";
  spec.expert_naming.native = Fusion::kGateThenUp;
  spec.expert_naming.transposed = true;
  parse_moe_layers(text, &spec);
  return spec;
}

void Llama4::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    out.norm("input_layernorm", spec.hidden);
    add_gqa(&out, spec.attention_bias);
    out.norm("post_attention_layernorm", spec.hidden);
    if (spec.layers[i].mlp == MlpKind::kDense) {
      add_gated_mlp(&out, "feed_forward", Role::kDenseMlp, spec.dense_intermediate);
      continue;
    }
    out.linear("feed_forward.router", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
    add_experts(&out);
    add_gated_mlp(&out, "feed_forward.shared_expert", Role::kSharedExpert, spec.shared_intermediate);
  }
  out.leave_layers();
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& llama4() {
  static const Llama4 family;
  return family;
}

}  // namespace nibble::model_families
