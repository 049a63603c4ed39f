// Hy4: multi-head latent attention with sinks and an elementwise output gate, an indexer in one layer of four,
// hyper-connections that weigh streams before and after a block without mixing them, DeepSeek's router, first layer
// dense. One MTP layer under "model.mtp_layers.0.", without hyper-connections.
//
// Shapes: transformers 5.24, hy_v4. Names: its conversion mapping (learnable_sink_param, linear_gate,
// hc_attn_layer.hc_pre.hc_fn) and a public header listing of the release, which holds experts as stacks and 27 MTP
// tensors; with them its 779,960,992,733 parameters come out. How the release lays out rotated pairs is not certain:
// transformers turns halves, as here, other loaders turn neighbours.
#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"
#include "nibble/models/families/common_indexer.h"

namespace nibble::model_families {
namespace {

// transformers' values.
constexpr double kDefaultTheta = 10000, kDefaultSwigluLimit = 10;
constexpr uint64_t kDefaultDense = 1;

class HyV4 final : public NamedFamily {
 public:
  HyV4() : NamedFamily("hy_v4", {"hy_v4"}, {"HYV4ForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override;
};

// Without `indexer_types`: the first layer, and the first of every four behind it.
std::vector<bool> default_indexers(uint64_t layers) {
  std::vector<bool> own(layers);
  for (uint64_t i = 0; i < layers; ++i) own[i] = i == 0 || (i - 1) % 4 == 0;
  return own;
}

void parse_gate(const ConfigReader& config, ModelSpec* spec) {
  const std::string kind = config.text_or({"gating_type"}, "elementwise");
  if (kind != "elementwise")
    throw config.refuse("`gating_type` names an output gate that is unknown")
        .value("gating_type", kind)
        .way_out("use a release of nibble that knows this gate");
  spec->output_gate = true;
}

ModelSpec HyV4::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "model.");
  spec.mtp_prefix = "model.mtp_layers.";
  spec.rope = parse_rope(config, kDefaultTheta);
  parse_mla(config, &spec);
  if (spec.q_lora_rank == 0)
    throw config.refuse("`q_lora_rank` is 0, but the indexer's queries come from that bottleneck")
        .way_out("take config.json from the same release as the weights");
  parse_indexer(config, &spec);
  set_indexers(config, parse_indexer_types(config, spec.layers.size()).value_or(default_indexers(spec.layers.size())),
               &spec);
  parse_gate(config, &spec);
  spec.sinks = true;
  parse_experts(config, &spec);
  parse_deepseek_router(config, &spec);
  parse_dense_first(config, &spec, kDefaultDense);
  parse_mtp(config, &spec);
  spec.hyper_streams = config.size({"hc_mult"}, 1024);
  spec.activation = Activation::kClampedSwiglu;  // of the routed experts
  spec.swiglu_limit = config.positive_or({"swiglu_limit"}, kDefaultSwigluLimit);
  spec.expert_naming.native = Fusion::kGateThenUp;
  return spec;
}

void add_attention(Inventory* out) {
  const ModelSpec& spec = out->spec();
  add_mla(out);
  out->linear("self_attn.linear_gate", Role::kAttention, spec.heads * spec.v_head_dim, spec.hidden, Projection::kHeads);
  out->add("self_attn.learnable_sink_param", Role::kAttention, {spec.heads});
  add_indexer(out);
}

// Weights of the streams before and after a block.
void add_hyper_connection(Inventory* out, const std::string& module) {
  const uint64_t streams = out->spec().hyper_streams;
  out->add(module + ".hc_pre.hc_fn", Role::kNorm, {2 * streams, streams * out->spec().hidden});
  out->add(module + ".hc_pre.hc_base", Role::kNorm, {2 * streams});
  out->add(module + ".hc_pre.hc_scale", Role::kNorm, {2});
}

void add_hyper_head(Inventory* out) {
  const uint64_t streams = out->spec().hyper_streams;
  out->add("hc_head.hc_head_fn", Role::kNorm, {streams, streams * out->spec().hidden});
  out->add("hc_head.hc_head_base", Role::kNorm, {streams});
  out->add("hc_head.hc_head_scale", Role::kNorm, {1});
}

void add_mtp_glue(Inventory* out) {
  const uint64_t hidden = out->spec().hidden;
  for (const char* norm : {"enorm", "hnorm", "final_layernorm"}) out->norm(norm, hidden);
  out->linear("eh_proj", Role::kMtp, hidden, 2 * hidden, Projection::kNone);
}

void HyV4::inventory(const ModelSpec& spec, const ParamVisitor& visit) const {
  Inventory out(spec, visit);
  add_embedding(&out);
  const size_t layers = spec.layers.size();
  for (size_t i = 0; i < layers + spec.mtp_layers; ++i) {
    const bool mtp = i >= layers;
    out.enter_layer(static_cast<int32_t>(i));
    if (mtp) add_mtp_glue(&out);
    if (!mtp) add_hyper_connection(&out, "hc_attn_layer");
    out.norm("input_layernorm", spec.hidden);
    add_attention(&out);
    if (!mtp) add_hyper_connection(&out, "hc_mlp_layer");
    out.norm("post_attention_layernorm", spec.hidden);
    if (!mtp && spec.layers[i].mlp == MlpKind::kDense) {
      add_gated_mlp(&out, "mlp", Role::kDenseMlp, spec.dense_intermediate);
    } else {
      add_deepseek_moe(&out);
    }
  }
  out.leave_layers();
  add_hyper_head(&out);
  add_final_norm_and_head(&out);
}

}  // namespace

const Family& hy_v4() {
  static const HyV4 family;
  return family;
}

}  // namespace nibble::model_families
