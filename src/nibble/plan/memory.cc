#include "nibble/plan/memory.h"

#include <algorithm>
#include <cmath>
#include <tuple>
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

// What the fullest GPU of a stage holds whatever the load.
struct Stage {
  uint64_t first = 0, last = 0;  // layers
  bool ends = false;             // the last one: head, final norm and MTP layers
  decltype(MemoryPlan::by_role) by_role{};
  uint64_t largest_stack = 0;
  double widest = 0;  // elements of the widest intermediate of attention and dense MLPs, for a token
  bool routes = false;
};

void set_weights(const ModelSpec& spec, const WeightGroups& weights, const Layout& layout, bool drafting,
                 std::vector<Stage>* stages) {
  // The last stage embeds what it drafts, and a tied head is the embedding.
  const bool embeds_again = layout.pp > 1 && (weights.tied() || (drafting && spec.mtp_layers != 0));
  for (const WeightGroup& group : weights.groups()) {
    const Role role = group.item.param.role;
    if (role == Role::kMtp && !drafting) continue;
    const uint64_t bytes = rank_bytes(group, layout);
    for (uint64_t s = 0; s < layout.pp; ++s) {
      Stage& stage = (*stages)[s];
      const uint64_t count =
          group.count_of_layers(stage.first, stage.last) + (stage.ends && embeds_again ? group.in_front : 0);
      stage.by_role[static_cast<size_t>(role)] += bytes * count;
      if (group.item.is_stack() && count != 0) stage.largest_stack = std::max(stage.largest_stack, bytes);
    }
  }
}

void set_widths(const ModelSpec& spec, const Layout& layout, Stage* stage) {
  double wide = 0;
  for (uint64_t i = stage->first; i < stage->last; ++i) {
    const LayerSpec& layer = spec.layers[i];
    const AttentionShape shape = spec.attention_shape(layer);
    double attention = of(shape.heads) * of(shape.head_dim) + 2 * of(shape.kv_heads) * of(shape.head_dim);
    if (layer.attention == AttentionKind::kNone) attention = 0;
    if (layer.attention == AttentionKind::kLinear)
      attention = 2 * of(spec.linear.key_heads) * of(spec.linear.key_dim) +
                  2 * of(spec.linear.heads) * of(spec.linear.value_dim);
    const bool moe = layer.mlp == MlpKind::kMoe;
    const double mlp = moe                            ? of(spec.shared_intermediate)
                       : layer.mlp == MlpKind::kDense ? of(spec.dense_intermediate)
                                                      : 0;
    wide = std::max({wide, attention, 3 * mlp});
    stage->routes = stage->routes || moe;
  }
  stage->widest = std::ceil(wide / of(layout.tp));
}

uint64_t activation_bytes(const ModelSpec& spec, const Layout& layout, const Stage& stage, uint64_t tokens,
                          uint64_t logit_rows) {
  // Of the stage's routed tokens a GPU meets its share, however they are dealt out.
  const double routed =
      of(spec.experts_per_token) *
      (of(spec.expert_width()) + std::ceil(3 * of(spec.expert_intermediate) / of(layout.expert_parts())));
  const double a_token = 4 * of(spec.hidden) + stage.widest + (stage.routes ? routed : 0);
  const double logits =
      stage.ends ? of(logit_rows) * std::ceil(of(spec.vocabulary) / of(layout.tp)) * sizeof(float) : 0;
  return bytes_of(of(tokens) * a_token * kActivationBytes + logits);
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

// A layout's stages, counted once; what a load adds follows.
class Stages {
 public:
  Stages(const Subject& subject, const WeightGroups& weights, const Layout& layout, const Device& device, bool drafting)
      : subject_(subject), layout_(layout), device_(device), drafting_(drafting), stages_(layout.pp) {
    const ModelSpec& spec = subject.spec;
    for (uint64_t s = 0; s < layout.pp; ++s) {
      std::tie(stages_[s].first, stages_[s].last) = stage_layers(spec.layers.size(), layout.pp, s);
      stages_[s].ends = s + 1 == layout.pp;
      set_widths(spec, layout, &stages_[s]);
    }
    set_weights(spec, weights, layout, drafting, &stages_);
  }

  // Of the stage that needs most: what each term is at most need not meet on one GPU.
  MemoryPlan plan(const PlanRequest& request) const {
    MemoryPlan fullest = plan_stage(stages_.front(), request);
    for (size_t s = 1; s < stages_.size(); ++s) {
      const MemoryPlan other = plan_stage(stages_[s], request);
      if (other.total() > fullest.total()) fullest = other;
    }
    return fullest;
  }

 private:
  // Bytes that one sequence keeps on a GPU of the stage.
  uint64_t kv_bytes(const Stage& stage, const PlanRequest& request) const {
    const auto& layers = subject_.cache.layers();
    const auto on_rank = [&](const KvLayer& layer) {
      return layer.rank_bytes(request.context, request.kv_element_bytes, layout_.tp);
    };
    uint64_t sum = 0;
    for (uint64_t i = stage.first; i < stage.last; ++i) sum += on_rank(layers[i]);
    const KvLayer* drafter = subject_.cache.last_attention();
    if (drafting_ && stage.ends && drafter != nullptr) sum += subject_.spec.mtp_layers * on_rank(*drafter);
    return sum;
  }

  MemoryPlan plan_stage(const Stage& stage, const PlanRequest& request) const {
    const ModelSpec& spec = subject_.spec;
    MemoryPlan plan;
    plan.capacity = device_.memory_bytes;
    plan.by_role = stage.by_role;
    for (const uint64_t bytes : plan.by_role) plan.weights += bytes;
    const uint64_t sequences = ceil_div(request.concurrency, layout_.dp);
    const uint64_t sampled = sequences * (request.draft + 1);
    const uint64_t tokens = std::max(sampled, kPrefillChunk);
    plan.kv = bytes_of(of(sequences) * of(kv_bytes(stage, request)));
    plan.activations = activation_bytes(spec, layout_, stage, tokens, std::max(sampled, kLogitRows));
    plan.workspace = kMatrixWorkspace + split_attention_bytes(spec, layout_, sequences);
    plan.communication = communication_bytes(spec, layout_, tokens);
    if (device_.kind == DeviceKind::kGpu) {
      plan.graphs_low = kGraphsLow;
      plan.graphs = kGraphsHigh;
    }
    const auto kept_free = static_cast<uint64_t>(static_cast<double>(device_.memory_bytes) * request.reserve);
    const uint64_t used = plan.kv + plan.activations + plan.workspace + plan.communication + plan.graphs;
    plan.reserve = kept_free > used ? kept_free - used : 0;
    plan.largest_stack = stage.largest_stack;
    plan.repack = std::min(kRepackChunk, plan.largest_stack);
    return plan;
  }

  const Subject& subject_;
  const Layout& layout_;
  const Device& device_;
  bool drafting_;
  std::vector<Stage> stages_;
};

}  // namespace

MemoryPlan plan_memory(const Subject& subject, const WeightGroups& weights, const Layout& layout, const Device& device,
                       const PlanRequest& request) {
  return Stages(subject, weights, layout, device, request.draft != 0).plan(request);
}

uint64_t most_sequences(const Subject& subject, const WeightGroups& weights, const Layout& layout, const Device& device,
                        const PlanRequest& request) {
  const Stages stages(subject, weights, layout, device, request.draft != 0);
  PlanRequest asked = request;
  const auto fits = [&](uint64_t sequences) {
    asked.concurrency = sequences;
    return stages.plan(asked).fits();
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
