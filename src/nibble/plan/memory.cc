#include "nibble/plan/memory.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "nibble/base/checked_math.h"
#include "nibble/ledger/sharding.h"

namespace nibble {
namespace {

constexpr double kActivationBytes = 2;
constexpr uint64_t kMatrixWorkspace = uint64_t{64} << 20;
constexpr uint64_t kPeerBuffer = uint64_t{32} << 20;
constexpr double kAttentionSplits = 32;
constexpr uint64_t kGraphsLow = 300'000'000, kGraphsHigh = 1'000'000'000;

double of(uint64_t number) { return static_cast<double>(number); }

// Sizes come from configurations: what 64 bits do not hold fits nowhere anyway.
uint64_t bytes_of(double bytes) {
  return bytes >= 1e18 ? uint64_t{1'000'000'000'000'000'000} : static_cast<uint64_t>(bytes);
}

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
double widest(const ModelSpec& spec, const Layout& layout) {
  double wide = 3 * of(std::max(spec.dense_intermediate, spec.shared_intermediate));
  for (const LayerSpec& layer : spec.layers) {
    const AttentionShape shape = spec.attention_shape(layer);
    double attention = of(shape.heads) * of(shape.head_dim) + 2 * of(shape.kv_heads) * of(shape.head_dim);
    if (layer.attention == AttentionKind::kLinear)
      attention = 2 * of(spec.linear.key_heads) * of(spec.linear.key_dim) +
                  2 * of(spec.linear.heads) * of(spec.linear.value_dim);
    wide = std::max(wide, attention);
  }
  return std::ceil(wide / of(layout.tp));
}

uint64_t activation_bytes(const ModelSpec& spec, const Layout& layout, uint64_t tokens, uint64_t logit_rows) {
  // Of the stage's routed tokens a GPU meets its share, however they are dealt out.
  const double routed =
      of(spec.experts_per_token) *
      (of(spec.expert_width()) + std::ceil(3 * of(spec.expert_intermediate) / of(layout.expert_parts())));
  const double a_token = 4 * of(spec.hidden) + widest(spec, layout) + routed;
  return bytes_of(of(tokens) * a_token * kActivationBytes +
                  of(logit_rows) * std::ceil(of(spec.vocabulary) / of(layout.tp)) * sizeof(float));
}

uint64_t communication_bytes(const ModelSpec& spec, const Layout& layout, uint64_t tokens) {
  const double streams = 2 * of(tokens) * of(spec.hidden) * kActivationBytes;
  double bytes = 0;
  if (layout.tp > 1) bytes += streams + of(std::min<uint64_t>(layout.tp - 1, 8) * kPeerBuffer);
  if (layout.ep > 1) bytes += 2 * of(tokens) * of(spec.experts_per_token) * of(spec.expert_width()) * kActivationBytes;
  if (layout.pp > 1) bytes += streams;
  return bytes_of(bytes);
}

uint64_t split_attention_bytes(const ModelSpec& spec, const Layout& layout, uint64_t sequences) {
  const double width = of(spec.kv_lora_rank != 0 ? spec.kv_lora_rank : spec.head_dim) + 2;
  return bytes_of(of(sequences) * std::ceil(of(spec.heads) / of(layout.tp)) * kAttentionSplits * width * sizeof(float));
}

}  // namespace

uint64_t rank_kv_bytes(const Subject& subject, const Layout& layout, uint64_t tokens, uint64_t element_bytes,
                       bool drafting) {
  const auto& layers = subject.cache.layers();
  const auto on_rank = [&](const KvLayer& layer) { return layer.rank_bytes(tokens, element_bytes, layout.tp); };
  const KvLayer* drafter = subject.cache.last_attention();
  uint64_t most = 0;
  for (uint64_t stage = 0; stage < layout.pp; ++stage) {
    const auto [first, last] = stage_layers(layers.size(), layout.pp, stage);
    uint64_t sum = 0;
    for (uint64_t i = first; i < last; ++i) sum += on_rank(layers[i]);
    if (drafting && stage + 1 == layout.pp && drafter != nullptr) sum += subject.spec.mtp_layers * on_rank(*drafter);
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
  plan.kv =
      bytes_of(of(sequences) * of(rank_kv_bytes(subject, layout, request.context, request.kv_element_bytes, drafting)));
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
