// Mistral Large 3, the text model of a multimodal release: DeepSeek-V3's shapes behind a softmax router without a
// correction bias, first layers dense, no MTP. The release has the vendor's own names, without "model." and "mlp."
// (layers.3.attention.wq_a, layers.3.experts.7.w1, tok_embeddings, output), vision parts beside them.
//
// Names: public loaders of the release, which list them; transformers 5.24 has no class for it. Shapes: deepseek_v3's,
// which those loaders use. Not certain: whether any release states these keys in a config.json of its own; the file
// here holds what the vendor's params.json says, in the field's names.
#include <array>

#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble::model_families {
namespace {

class MistralLarge3 final : public NamedFamily {
 public:
  MistralLarge3() : NamedFamily("mistral_large_3", {"mistral_large_3"}, {"MistralLarge3ForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
  std::span<const std::string_view> other_parts() const override {
    static constexpr std::array<std::string_view, 4> kParts{"vision_encoder.", "vision_language_adapter.",
                                                            "patch_merger.", "pre_mm_projector_norm."};
    return kParts;
  }
};

ModelSpec MistralLarge3::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "");
  spec.rope = parse_rope(config);
  spec.rope.interleaved = true;
  parse_mla(config, &spec);
  if (spec.q_lora_rank == 0)
    throw config.refuse("`q_lora_rank` is 0: queries without a bottleneck have no known name in this release")
        .way_out("take config.json from the same release as the weights");
  parse_experts(config, &spec);
  parse_deepseek_router(config, &spec);
  spec.router = RouterKind::kSoftmaxTopK;
  parse_dense_first(config, &spec);
  spec.expert_naming = {"", "w1", "w3", "w2", Fusion::kNone, false};
  return spec;
}

void add_attention(Inventory* out) {
  const ModelSpec& spec = out->spec();
  out->linear("attention.wq_a", Role::kAttention, spec.q_lora_rank, spec.hidden, Projection::kQa);
  out->norm("attention.q_a_norm", spec.q_lora_rank);
  out->linear("attention.wq_b", Role::kAttention, spec.heads * spec.head_dim, spec.q_lora_rank, Projection::kQb);
  out->linear("attention.wkv_a_with_mqa", Role::kAttention, spec.kv_lora_rank + spec.qk_rope_head_dim, spec.hidden,
              Projection::kKva);
  out->norm("attention.kv_a_norm", spec.kv_lora_rank);
  out->linear("attention.wkv_b", Role::kAttention, spec.heads * (spec.qk_nope_head_dim + spec.v_head_dim),
              spec.kv_lora_rank, Projection::kKvb);
  out->linear("attention.wo", Role::kAttention, spec.hidden, spec.heads * spec.v_head_dim, Projection::kO);
}

void add_mlp(Inventory* out, const std::string& module, Role role, uint64_t intermediate) {
  const uint64_t hidden = out->spec().hidden;
  out->linear(module + ".w1", role, intermediate, hidden, Projection::kGate);
  out->linear(module + ".w3", role, intermediate, hidden, Projection::kUp);
  out->linear(module + ".w2", role, hidden, intermediate, Projection::kDown);
}

void MistralLarge3::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  out.add("tok_embeddings.weight", Role::kEmbedding, {spec.vocabulary, spec.hidden});
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    out.enter_layer(static_cast<int32_t>(i));
    out.norm("attention_norm", spec.hidden);
    add_attention(&out);
    out.norm("ffn_norm", spec.hidden);
    if (spec.layers[i].mlp == MlpKind::kDense) {
      add_mlp(&out, "feed_forward", Role::kDenseMlp, spec.dense_intermediate);
      continue;
    }
    out.linear("gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
    add_experts(&out);
    if (spec.shared_intermediate != 0) add_mlp(&out, "shared_experts", Role::kSharedExpert, spec.shared_intermediate);
  }
  out.leave_layers();
  out.norm("norm", spec.hidden);
  add_head(&out, "output.weight");
}

}  // namespace

const Family& mistral_large_3() {
  static const MistralLarge3 family;
  return family;
}

}  // namespace nibble::model_families
