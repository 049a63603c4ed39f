#include "nibble/models/families/linear_blocks.h"

#include <algorithm>

namespace nibble {
namespace {

constexpr uint64_t kMaxKernel = 1024;

}  // namespace

void parse_linear_layers(const ConfigReader& config, const LinearPattern& pattern, AttentionKind full,
                         ModelSpec* spec) {
  const auto kinds = config.texts("layer_types", spec->layers.size());
  const uint64_t interval = kinds ? 0 : config.size_or({pattern.interval_key}, kMaxLayers, pattern.default_interval);
  for (size_t i = 0; i < spec->layers.size(); ++i) {
    const bool linear = kinds ? (*kinds)[i] == "linear_attention" : (i + 1) % interval != 0;
    spec->layers[i].attention = linear ? AttentionKind::kLinear : full;
    if (!kinds || linear || (*kinds)[i] == "full_attention") continue;
    if (std::find(pattern.other_kinds.begin(), pattern.other_kinds.end(), (*kinds)[i]) == pattern.other_kinds.end())
      throw config.refuse("an entry of `layer_types` is unknown to this family")
          .value("layer", i)
          .value("entry", (*kinds)[i])
          .way_out("use a release of nibble that knows this kind of layer");
  }
}

RopeSpec parse_quarter_rope(const ConfigReader& config) {
  RopeSpec rope = parse_rope(config);
  const auto parameters = config.maybe_section("rope_parameters");
  const bool told = config.has("partial_rotary_factor") || (parameters && parameters->has("partial_rotary_factor"));
  if (!told) rope.partial_rotary_factor = 0.25;
  return rope;
}

void parse_gated_delta_net(const ConfigReader& config, ModelSpec* spec) {
  LinearAttentionSpec& linear = spec->linear;
  linear.heads = config.size({"linear_num_value_heads"}, kMaxDimension);
  linear.key_heads = config.size({"linear_num_key_heads"}, kMaxDimension);
  linear.key_dim = config.size({"linear_key_head_dim"}, kMaxDimension);
  linear.value_dim = config.size({"linear_value_head_dim"}, kMaxDimension);
  linear.conv_kernel = config.size({"linear_conv_kernel_dim"}, kMaxKernel);
  if (linear.heads % linear.key_heads != 0)
    throw config.refuse("linear attention's value heads are not a multiple of its key heads")
        .value("linear_num_value_heads", linear.heads)
        .value("linear_num_key_heads", linear.key_heads)
        .way_out("take config.json from the same release as the weights");
}

void add_gated_delta_net(Inventory* out, bool fused) {
  const ModelSpec& spec = out->spec();
  const LinearAttentionSpec& linear = spec.linear;
  const uint64_t values = linear.heads * linear.value_dim;
  const auto input = [&](const char* module, uint64_t rows, Projection projection) {
    out->linear(module, Role::kAttention, rows, spec.hidden, projection);
  };
  if (fused) {
    input("linear_attn.in_proj_qkvz", linear.conv_channels() + values, Projection::kHeads);
    input("linear_attn.in_proj_ba", 2 * linear.heads, Projection::kHeads);
  } else {
    input("linear_attn.in_proj_qkv", linear.conv_channels(), Projection::kQkv);
    input("linear_attn.in_proj_z", values, Projection::kHeads);
    input("linear_attn.in_proj_b", linear.heads, Projection::kHeads);
    input("linear_attn.in_proj_a", linear.heads, Projection::kHeads);
  }
  out->add("linear_attn.conv1d.weight", Role::kAttention, {linear.conv_channels(), 1, linear.conv_kernel});
  out->add("linear_attn.A_log", Role::kAttention, {linear.heads});
  out->add("linear_attn.dt_bias", Role::kAttention, {linear.heads});
  out->norm("linear_attn.norm", linear.value_dim);
  out->linear("linear_attn.out_proj", Role::kAttention, spec.hidden, values, Projection::kO);
}

void add_gated_gqa(Inventory* out) {
  const ModelSpec& spec = out->spec();
  const uint64_t q = spec.heads * spec.head_dim;
  const uint64_t kv = spec.kv_heads * spec.head_dim;
  const bool bias = spec.attention_bias;
  out->linear("self_attn.q_proj", Role::kAttention, spec.output_gate ? 2 * q : q, spec.hidden, Projection::kQ, bias);
  out->linear("self_attn.k_proj", Role::kAttention, kv, spec.hidden, Projection::kK, bias);
  out->linear("self_attn.v_proj", Role::kAttention, kv, spec.hidden, Projection::kV, bias);
  out->linear("self_attn.o_proj", Role::kAttention, spec.hidden, q, Projection::kO, bias);
  out->norm("self_attn.q_norm", spec.head_dim);
  out->norm("self_attn.k_norm", spec.head_dim);
}

void add_kda_core(Inventory* out, const std::string& module) {
  const ModelSpec& spec = out->spec();
  const LinearAttentionSpec& linear = spec.linear;
  const uint64_t width = linear.heads * linear.key_dim;
  out->linear(module + ".q_proj", Role::kAttention, width, spec.hidden, Projection::kQ);
  out->linear(module + ".k_proj", Role::kAttention, width, spec.hidden, Projection::kK);
  out->linear(module + ".v_proj", Role::kAttention, width, spec.hidden, Projection::kV);
  for (const char* conv : {".q_conv1d.weight", ".k_conv1d.weight", ".v_conv1d.weight"})
    out->add(module + conv, Role::kAttention, {width, 1, linear.conv_kernel});
  out->add(module + ".A_log", Role::kAttention, {linear.heads});
  out->add(module + ".dt_bias", Role::kAttention, {width});
  out->linear(module + ".b_proj", Role::kAttention, linear.heads, spec.hidden, Projection::kHeads);
  out->norm(module + ".o_norm", linear.key_dim);
  out->linear(module + ".o_proj", Role::kAttention, spec.hidden, width, Projection::kO);
}

void add_qwen_moe(Inventory* out) {
  const ModelSpec& spec = out->spec();
  out->linear("mlp.gate", Role::kRouter, spec.experts, spec.hidden, Projection::kNone);
  add_experts(out);
  if (spec.shared_intermediate == 0) return;
  add_gated_mlp(out, "mlp.shared_expert", Role::kSharedExpert, spec.shared_intermediate);
  out->linear("mlp.shared_expert_gate", Role::kRouter, 1, spec.hidden, Projection::kNone);
}

void parse_qwen_moe(const ConfigReader& config, ModelSpec* spec) {
  parse_experts(config, spec);
  spec->router = RouterKind::kSoftmaxTopK;
  spec->norm_topk_prob = config.flag_or({"norm_topk_prob"}, true);  // transformers' default from Qwen3-Next on
  spec->expert_intermediate = config.size({"moe_intermediate_size"}, kMaxDimension);
  spec->shared_intermediate = config.count({"shared_expert_intermediate_size"}, kMaxDimension);
  spec->shared_experts = spec->shared_intermediate != 0 ? 1 : 0;
  for (LayerSpec& layer : spec->layers) layer.mlp = MlpKind::kMoe;
}

}  // namespace nibble
