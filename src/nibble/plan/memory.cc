#include "nibble/plan/memory.h"

#include <algorithm>
#include <vector>

#include "nibble/base/checked_math.h"
#include "nibble/ledger/sharding.h"

namespace nibble {
namespace {

constexpr uint64_t kActivationBytes = 2;
constexpr uint64_t kMatrixWorkspace = uint64_t{64} << 20;
constexpr uint64_t kPeerBuffer = uint64_t{32} << 20;
constexpr uint64_t kAttentionSplits = 32;
constexpr uint64_t kGraphsLow = 300'000'000, kGraphsHigh = 1'000'000'000;

void set_weights(const WeightGroups& weights, const Layout& layout, bool drafting, MemoryPlan* plan) {
  using ByRole = decltype(plan->by_role);
  std::vector<ByRole> stages(layout.pp);
  for (const WeightGroup& group : weights.groups()) {
    if (group.item.param.role == Role::kMtp && !drafting) continue;
    const uint64_t bytes = rank_bytes(group, layout);
    for (uint64_t s = 0; s < layout.pp; ++s)
      stages[s][static_cast<size_t>(group.item.param.role)] += bytes * group.count(s, layout.pp);
    if (group.item.is_stack()) plan->largest_stack = std::max(plan->largest_stack, bytes);
  }
  for (const ByRole& stage : stages) {
    uint64_t sum = 0;
    for (const uint64_t bytes : stage) sum += bytes;
    if (sum <= plan->weights) continue;
    plan->weights = sum;
    plan->by_role = stage;
  }
}

// Elements of the widest intermediate of attention and dense MLPs on one GPU, for a token.
uint64_t widest(const ModelSpec& spec, const Layout& layout) {
  uint64_t wide = 0;
  for (const LayerSpec& layer : spec.layers) {
    const AttentionShape shape = spec.attention_shape(layer);
    uint64_t attention = shape.heads * shape.head_dim + 2 * shape.kv_heads * shape.head_dim;
    if (layer.attention == AttentionKind::kLinear)
      attention = spec.linear.conv_channels() + spec.linear.heads * spec.linear.value_dim;
    wide = std::max(wide, attention);
  }
  wide = std::max(wide, 3 * std::max(spec.dense_intermediate, spec.shared_intermediate));
  return ceil_div(wide, layout.tp);
}

uint64_t activation_bytes(const ModelSpec& spec, const Layout& layout, uint64_t tokens, uint64_t logit_rows) {
  uint64_t a_token = 4 * spec.hidden + widest(spec, layout);
  // Of the stage's routed tokens a GPU meets its share, however they are dealt out.
  const uint64_t routed =
      spec.experts_per_token * (spec.expert_width() + ceil_div(3 * spec.expert_intermediate, layout.expert_parts()));
  a_token += routed;
  return tokens * a_token * kActivationBytes + logit_rows * ceil_div(spec.vocabulary, layout.tp) * sizeof(float);
}

uint64_t communication_bytes(const ModelSpec& spec, const Layout& layout, uint64_t tokens) {
  uint64_t bytes = 0;
  if (layout.tp > 1)
    bytes += 2 * tokens * spec.hidden * kActivationBytes + std::min<uint64_t>(layout.tp - 1, 8) * kPeerBuffer;
  if (layout.ep > 1) bytes += 2 * tokens * spec.experts_per_token * spec.expert_width() * kActivationBytes;
  if (layout.pp > 1) bytes += 2 * tokens * spec.hidden * kActivationBytes;
  return bytes;
}

uint64_t split_attention_bytes(const ModelSpec& spec, const Layout& layout, uint64_t sequences) {
  const uint64_t width = (spec.kv_lora_rank != 0 ? spec.kv_lora_rank : spec.head_dim) + 2;
  return sequences * ceil_div(spec.heads, layout.tp) * kAttentionSplits * width * sizeof(float);
}

}  // namespace

uint64_t rank_kv_bytes(const Subject& subject, const Layout& layout, uint64_t tokens, uint64_t element_bytes,
                       bool drafting) {
  const auto& layers = subject.cache.layers();
  const auto on_rank = [&](const KvLayer& layer) {
    return ceil_div(layer.bytes(tokens, element_bytes), std::min(layer.heads, layout.tp));
  };
  uint64_t most = 0;
  for (uint64_t stage = 0; stage < layout.pp; ++stage) {
    const auto [first, last] = stage_layers(layers.size(), layout.pp, stage);
    uint64_t sum = 0;
    for (uint64_t i = first; i < last; ++i) sum += on_rank(layers[i]);
    if (drafting && stage + 1 == layout.pp) {
      // MTP layers attend as the model's last attention layer does.
      for (size_t i = layers.size(); i-- > 0;) {
        if (layers[i].elements + layers[i].window_elements == 0) continue;
        sum += subject.spec.mtp_layers * on_rank(layers[i]);
        break;
      }
    }
    most = std::max(most, sum);
  }
  return most;
}

MemoryPlan plan_memory(const Subject& subject, const WeightGroups& weights, const Layout& layout, const Device& device,
                       const PlanRequest& request) {
  const ModelSpec& spec = subject.spec;
  MemoryPlan plan;
  plan.capacity = device.memory_bytes;
  const bool drafting = request.draft != 0;
  set_weights(weights, layout, drafting, &plan);
  const uint64_t sequences = ceil_div(request.concurrency, layout.dp);
  const uint64_t sampled = sequences * (request.draft + 1);
  const uint64_t tokens = std::max(sampled, kPrefillChunk);
  plan.kv = sequences * rank_kv_bytes(subject, layout, request.context, request.kv_element_bytes, drafting);
  plan.activations = activation_bytes(spec, layout, tokens, std::max(sampled, kLogitRows));
  plan.workspace = kMatrixWorkspace + split_attention_bytes(spec, layout, sequences);
  plan.communication = communication_bytes(spec, layout, tokens);
  if (device.kind == DeviceKind::kGpu) {
    plan.graphs_low = kGraphsLow;
    plan.graphs = kGraphsHigh;
  }
  const auto kept_free = static_cast<uint64_t>(static_cast<double>(device.memory_bytes) * request.reserve);
  const uint64_t used = plan.kv + plan.activations + plan.workspace + plan.communication + plan.graphs;
  plan.reserve = kept_free > used ? kept_free - used : 0;
  plan.repack = std::min(kRepackChunk, plan.largest_stack);
  return plan;
}

uint64_t most_sequences(const Subject& subject, const WeightGroups& weights, const Layout& layout, const Device& device,
                        const PlanRequest& request) {
  const auto fits = [&](uint64_t sequences) {
    PlanRequest asked = request;
    asked.concurrency = sequences;
    return plan_memory(subject, weights, layout, device, asked).fits();
  };
  if (!fits(layout.dp)) return 0;
  uint64_t low = layout.dp;
  uint64_t high = low;
  constexpr uint64_t kMost = uint64_t{1} << 20;
  while (high < kMost && fits(high * 2)) high *= 2;
  low = high;
  high = high * 2;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace nibble
