#include "nibble/plan/step_time.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "nibble/base/checked_math.h"
#include "nibble/ledger/attention_cost.h"
#include "nibble/ledger/sharding.h"

namespace nibble {
namespace {

double of(uint64_t number) { return static_cast<double>(number); }

std::optional<Routing> routing_of(const ModelSpec& spec, double skew) {
  if (spec.experts == 0) return std::nullopt;
  return Routing(spec.experts, spec.experts_per_token, skew);
}

void add_weights(const ModelSpec& spec, const WeightGroup& group, const Layout& layout, double count,
                 StageLoad* stage) {
  const WeightItem& item = group.item;
  const double bytes = of(rank_bytes(group, layout));
  if (item.is_stack()) {
    stage->expert_bytes += count * bytes;
    if (item.param.shape.size() == 3)
      stage->expert_flops += count * 2 * of(item.elements) * of(spec.experts_per_token) / of(item.experts());
    return;
  }
  stage->fixed_bytes += count * bytes;
  const bool head = item.param.role == Role::kHead || item.param.role == Role::kEmbedding;
  if (head) stage->head_bytes += count * bytes;
  if (item.param.shape.size() >= 2 && item.bytes != 0)
    (head ? stage->head_flops : stage->fixed_flops) += count * 2 * of(item.elements) * bytes / of(item.bytes);
}

}  // namespace

StepModel::StepModel(const Subject& subject, const WeightGroups& weights, const Layout& layout, const Device& device,
                     uint64_t gpus_per_machine, double flops, double skew)
    : subject_(&subject),
      layout_(layout),
      device_(&device),
      flops_(flops),
      routing_(routing_of(subject.spec, skew)),
      rank_load_(routing_ ? routing_->rank_load(layout.ep) : 1),
      exchange_(subject.spec, layout, device, gpus_per_machine, rank_load_) {
  const ModelSpec& spec = subject.spec;
  stages_.resize(layout.pp);
  for (uint64_t s = 0; s < layout.pp; ++s) {
    std::tie(stages_[s].first, stages_[s].last) = stage_layers(spec.layers.size(), layout.pp, s);
    for (uint64_t i = stages_[s].first; i < stages_[s].last; ++i) {
      const LayerSpec& layer = spec.layers[i];
      stages_[s].moe_layers += layer.mlp == MlpKind::kMoe ? 1 : 0;
      // One after attention, one after the MLP; experts that are dealt out bring their own exchange.
      stages_[s].tp_reductions += layer.attention != AttentionKind::kNone ? 1 : 0;
      stages_[s].tp_reductions +=
          layer.mlp == MlpKind::kDense || (layer.mlp == MlpKind::kMoe && layout.ep == 1) ? 1 : 0;
    }
  }
  for (const WeightGroup& group : weights.groups()) add_group(group, weights.tied());
}

void StepModel::add_group(const WeightGroup& group, bool tied) {
  const Role role = group.item.param.role;
  StageLoad& last = stages_.back();
  if (role == Role::kUnknown) return;
  if (role == Role::kMtp) {
    (group.item.is_stack() ? last.mtp_expert_bytes : last.mtp_bytes) +=
        of(rank_bytes(group, layout_)) * of(group.count(layout_.pp - 1, layout_.pp));
  } else if (role == Role::kEmbedding) {
    // One row of it is read, and a few of tables inside layers; a tied head reads all of it, on the last stage.
    if (tied && group.in_front != 0) add_weights(subject_->spec, group, layout_, 1, &last);
  } else {
    for (uint64_t s = 0; s < layout_.pp; ++s)
      add_weights(subject_->spec, group, layout_, of(group.count(s, layout_.pp)), &stages_[s]);
  }
}

double StepModel::pooled(uint64_t sequences, uint64_t tokens) const {
  return of((layout_.copies_experts() ? ceil_div(sequences, layout_.dp) : sequences) * tokens);
}

// `group_tokens`: of one group of TP GPUs; `stage_tokens`: of all that share the experts.
void StepModel::add_exchange(size_t stage, double group_tokens, double stage_tokens, StepTime* time) const {
  const StageLoad& load = stages_[stage];
  time->exchange += of(load.tp_reductions) * exchange_.all_reduce(group_tokens) +
                    of(load.moe_layers) * exchange_.experts(group_tokens, stage_tokens) +
                    exchange_.hand_over(group_tokens, stage);
}

// What one stage reads and computes.
void StepModel::add_work(double weights, double kv, double flops, StepTime* time) const {
  const double read = (weights + kv) / device_->memory_bandwidth;
  const double compute = flops_ > 0 ? flops / flops_ : 0;
  time->weight_bytes += weights;
  time->kv_bytes += kv;
  time->read += read;
  time->compute += compute;
  time->floor += std::max(read, compute);
}

double StepModel::draft_read(uint64_t sequences, uint64_t context, uint64_t kv_element_bytes) const {
  const ModelSpec& spec = subject_->spec;
  if (spec.mtp_layers == 0) return 0;
  const StageLoad& last = stages_.back();
  const double share = routing_ ? routing_->busiest_share(pooled(sequences, 1), layout_.ep) : 0;
  const double steps = std::max(1.0, of(spec.mtp_layers) / of(std::max<uint64_t>(spec.mtp_layers_per_step, 1)));
  double bytes = (last.mtp_bytes + share * last.mtp_expert_bytes) / steps + last.head_bytes;
  if (const KvLayer* layer = subject_->cache.last_attention(); layer != nullptr)
    bytes += of(ceil_div(sequences, layout_.dp)) * layer->rank_read_bytes(context, kv_element_bytes, layout_.tp);
  return bytes / device_->memory_bandwidth;
}

StepTime StepModel::prefill(uint64_t tokens) const {
  StepTime time;
  const double share = routing_ ? routing_->busiest_share(of(tokens), layout_.ep) : 0;
  if (routing_) time.distinct_experts = routing_->distinct(of(tokens));
  const auto layers = of(std::max<uint64_t>(subject_->spec.layers.size(), 1));
  const AttentionFlops attention = prefill_attention_flops(subject_->spec, tokens);
  const double a_layer = (attention.heads / of(layout_.tp) + attention.indexer) / layers;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const StageLoad& stage = stages_[s];
    const double weights = stage.fixed_bytes + share * stage.expert_bytes;
    // One group of TP GPUs has the prompt; of its tokens only the last needs the head.
    const double flops =
        of(tokens) * (stage.fixed_flops + stage.expert_flops * rank_load_ / of(layout_.expert_gpus())) +
        stage.head_flops + a_layer * of(stage.last - stage.first);
    add_work(weights, 0, flops, &time);
    add_exchange(s, of(tokens), of(tokens), &time);
  }
  return time;
}

StepTime StepModel::step(uint64_t sequences, uint64_t context, uint64_t kv_element_bytes, uint64_t tokens) const {
  const ModelSpec& spec = subject_->spec;
  const auto& layers = subject_->cache.layers();
  StepTime time;
  const double meeting = pooled(sequences, tokens);
  const double share = routing_ ? routing_->busiest_share(meeting, layout_.ep) : 0;
  if (routing_) time.distinct_experts = routing_->distinct(meeting);
  const uint64_t group_sequences = ceil_div(sequences, layout_.dp);
  const double group_tokens = of(group_sequences * tokens);
  const AttentionFlops attention = decode_attention_flops(spec, context);
  const double a_layer =
      (attention.heads / of(layout_.tp) + attention.indexer) / of(std::max<uint64_t>(layers.size(), 1));
  for (size_t s = 0; s < stages_.size(); ++s) {
    const StageLoad& stage = stages_[s];
    double kv = 0;
    for (uint64_t i = stage.first; i < stage.last; ++i)
      kv += layers[i].rank_read_bytes(context, kv_element_bytes, layout_.tp);
    kv *= of(group_sequences);
    const double weights = stage.fixed_bytes + share * stage.expert_bytes;
    const double flops =
        group_tokens * (stage.fixed_flops + stage.head_flops + a_layer * of(stage.last - stage.first)) +
        meeting * stage.expert_flops * rank_load_ / of(layout_.expert_gpus());
    const double before = time.total();
    add_work(weights, kv, flops, &time);
    add_exchange(s, group_tokens, meeting, &time);
    if (s + 1 == stages_.size()) time.exchange += exchange_.hand_back(group_tokens);
    time.slowest_stage = std::max(time.slowest_stage, time.total() - before);
  }
  return time;
}

double StepModel::tokens_per_second(uint64_t sequences, uint64_t context, uint64_t kv_element_bytes) const {
  const double whole = step(sequences, context, kv_element_bytes).total();
  const uint64_t parts = std::min(sequences, layout_.pp);
  if (parts <= 1) return of(sequences) / whole;
  const StepTime part = step(ceil_div(sequences, parts), context, kv_element_bytes);
  return of(sequences) / std::min(whole, std::max(part.total(), of(parts) * part.slowest_stage));
}

}  // namespace nibble
