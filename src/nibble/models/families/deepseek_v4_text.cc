#include "nibble/models/families/deepseek_v4.h"

namespace nibble {
namespace {

// The scaling belongs to the compressed entries alone, which also have their own theta. Newer files keep the two apart.
RopeSpec parse_v4_rope(const ConfigReader& config) {
  RopeSpec rope;
  const auto parameters = config.maybe_section("rope_parameters");
  if (parameters && parameters->has("compress")) {
    rope.theta = parameters->section("main").positive({"rope_theta"});
    const ConfigReader compress = parameters->section("compress");
    parse_rope_scaling(compress, &rope);
    rope.compress_theta = compress.positive({"rope_theta"});
  } else {
    rope = parse_rope(config, 10000);
    rope.compress_theta = config.positive_or({"compress_rope_theta"}, 160000);
  }
  rope.interleaved = true;
  return rope;
}

}  // namespace

void parse_deepseek_v4_text(const ConfigReader& config, ModelSpec* spec) {
  spec->rope = parse_v4_rope(config);
  spec->heads = config.size({"num_attention_heads"}, kMaxDimension);
  spec->kv_heads = 1;
  spec->head_dim = config.size({"head_dim"}, kMaxDimension);
  spec->q_lora_rank = config.size({"q_lora_rank"}, kMaxDimension);
  spec->qk_rope_head_dim = config.size({"qk_rope_head_dim"}, spec->head_dim);
  spec->o_groups = config.size({"o_groups"}, spec->heads);
  spec->o_lora_rank = config.size({"o_lora_rank"}, kMaxDimension);
  spec->hyper_streams = config.size({"hc_mult"}, 1024);
  spec->sinks = true;
  parse_indexer(config, spec);
  parse_experts(config, spec);
  parse_deepseek_router(config, spec);
  spec->router = RouterKind::kSqrtSoftplusBias;
  spec->activation = Activation::kClampedSwiglu;
  spec->swiglu_limit = config.positive_or({"swiglu_limit"}, 10);
  spec->expert_naming = {"ffn", "w1", "w3", "w2", Fusion::kNone, false};
}

void add_deepseek_v4_attention(Inventory* out) {
  const ModelSpec& spec = out->spec();
  const uint64_t q = spec.heads * spec.head_dim;
  const uint64_t low = spec.o_groups * spec.o_lora_rank;
  out->norm("attn_norm", spec.hidden);
  out->linear("attn.wq_a", Role::kAttention, spec.q_lora_rank, spec.hidden, Projection::kQa);
  out->norm("attn.q_norm", spec.q_lora_rank);
  out->linear("attn.wq_b", Role::kAttention, q, spec.q_lora_rank, Projection::kQb);
  out->linear("attn.wkv", Role::kAttention, spec.head_dim, spec.hidden, Projection::kOther);
  out->norm("attn.kv_norm", spec.head_dim);
  out->linear("attn.wo_a", Role::kAttention, low, q / spec.o_groups, Projection::kHeads);
  out->linear("attn.wo_b", Role::kAttention, spec.hidden, low, Projection::kO);
  out->add("attn.attn_sink", Role::kAttention, {spec.heads});
}

void add_deepseek_v4_experts(Inventory* out) {
  const ModelSpec& spec = out->spec();
  add_experts(out);
  const uint64_t shared = spec.shared_intermediate;
  if (shared == 0) return;
  out->linear("ffn.shared_experts.w1", Role::kSharedExpert, shared, spec.hidden, Projection::kGate);
  out->linear("ffn.shared_experts.w3", Role::kSharedExpert, shared, spec.hidden, Projection::kUp);
  out->linear("ffn.shared_experts.w2", Role::kSharedExpert, spec.hidden, shared, Projection::kDown);
}

void add_deepseek_v4_hyper_connection(Inventory* out, const std::string& block) {
  const uint64_t streams = out->spec().hyper_streams;
  const uint64_t mixes = (2 + streams) * streams;
  out->add(block + "_fn", Role::kNorm, {mixes, streams * out->spec().hidden});
  out->add(block + "_base", Role::kNorm, {mixes});
  out->add(block + "_scale", Role::kNorm, {3});
}

}  // namespace nibble
