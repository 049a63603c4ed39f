#include "nibble/plan/step_time.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"
#include "nibble/ledger/attention_cost.h"
#include "nibble/ledger/sharding.h"

namespace nibble {
namespace {

constexpr double kActivationBytes = 2;

double of(uint64_t number) { return static_cast<double>(number); }

// Different ones among `parts` equal parts that k choices fall on.
double different(double parts, double choices) { return parts * -std::expm1(choices * std::log1p(-1 / parts)); }

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
    : subject_(&subject), layout_(layout), device_(&device), gpus_per_machine_(gpus_per_machine), flops_(flops) {
  const ModelSpec& spec = subject.spec;
  if (spec.experts != 0) {
    routing_.emplace(spec.experts, spec.experts_per_token, skew);
    rank_load_ = routing_->rank_load(layout.ep);
  }
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
  bool tied = true;
  for (const WeightGroup& group : weights.groups()) tied = tied && group.item.param.role != Role::kHead;
  for (const WeightGroup& group : weights.groups()) add_group(group, tied);
}

void StepModel::add_group(const WeightGroup& group, bool tied) {
  const Role role = group.item.param.role;
  StageLoad& last = stages_.back();
  if (role == Role::kUnknown) return;
  if (role == Role::kMtp) {
    (group.item.is_stack() ? last.mtp_expert_bytes : last.mtp_bytes) +=
        of(rank_bytes(group, layout_)) * of(group.count(layout_.pp - 1, layout_.pp));
  } else if (role == Role::kEmbedding) {
    // One row of it is read; a tied head reads all of it, on the last stage.
    if (tied) add_weights(subject_->spec, group, layout_, 1, &last);
  } else {
    for (uint64_t s = 0; s < layout_.pp; ++s)
      add_weights(subject_->spec, group, layout_, of(group.count(s, layout_.pp)), &stages_[s]);
  }
}

// Inside a domain, or between cards of one machine, over links; else over network cards. A device without one kind uses
// the other; without both nothing is known.
StepModel::Wire StepModel::wire_of(uint64_t gpus) const {
  const bool inside = gpus <= std::max(device_->link_domain, gpus_per_machine_) || device_->nic_bandwidth <= 0;
  if (inside && device_->link_bandwidth > 0) return {device_->link_bandwidth, device_->link_latency};
  if (device_->nic_bandwidth > 0) return {device_->nic_bandwidth, device_->nic_latency};
  throw Error("no way between several of this device is known")
      .value("device", device_->name)
      .value("gpus", gpus)
      .way_out("plan for one of them")
      .way_out("--gpu FILE with its link_bandwidth or nic_bandwidth");
}

double StepModel::all_reduce(double tokens) const {
  if (layout_.tp == 1) return 0;
  const Wire wire = wire_of(layout_.tp);
  const double parts = of(layout_.tp);
  return 2 * wire.latency +
         2 * (parts - 1) / parts * tokens * of(subject_->spec.hidden) * kActivationBytes / wire.bandwidth;
}

uint64_t StepModel::domains() const {
  if (device_->nic_bandwidth <= 0) return 1;
  if (device_->link_bandwidth <= 0) return layout_.stage_gpus();
  return ceil_div(layout_.stage_gpus(), std::max(device_->link_domain, gpus_per_machine_));
}

double StepModel::all_to_all(uint64_t tokens, uint64_t over_domains) const {
  return exchange_of(of(tokens) / of(layout_.stage_gpus()), over_domains);
}

double StepModel::exchange_of(double mine, uint64_t over_domains) const {
  if (layout_.ep == 1 || !routing_) return 0;
  const ModelSpec& spec = subject_->spec;
  const double ranks = of(layout_.ep);
  // A rank whose experts are cut over several GPUs takes a copy for each of them.
  const double copies = different(ranks, of(spec.experts_per_token)) * of(layout_.expert_parts());
  const double copy = of(spec.expert_width()) * kActivationBytes;
  const double domains = of(over_domains);
  // Of the copies, those to this GPU's own rank stay; those to its own domain go over links; of a token that goes to
  // another domain one copy crosses the network and is handed on inside.
  const double inside = copies / domains * (1 - 1 / std::max(1.0, ranks / domains));
  const double across = domains > 1 ? different(domains, of(spec.experts_per_token)) * (1 - 1 / domains) : 0;
  const Wire link = wire_of(1);
  double seconds = mine * (inside + across) * copy / link.bandwidth + link.latency;
  if (domains > 1) seconds = std::max(seconds, mine * across * copy / device_->nic_bandwidth) + device_->nic_latency;
  return 2 * seconds;
}

// `group_tokens`: of one group of TP GPUs; `mine`: those that one GPU sends to the experts.
void StepModel::add_exchange(const StageLoad& stage, double group_tokens, double mine, StepTime* time) const {
  double seconds = of(stage.tp_reductions) * all_reduce(group_tokens);
  seconds += of(stage.moe_layers) * exchange_of(mine, domains());
  if (layout_.pp > 1) {
    const Wire wire = wire_of(layout_.gpus());
    seconds +=
        wire.latency + group_tokens * of(subject_->spec.hidden) * kActivationBytes / of(layout_.tp) / wire.bandwidth;
  }
  time->exchange += seconds;
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
  const double share = routing_ ? routing_->busiest_share(of(sequences), layout_.ep) : 0;
  const double steps = std::max(1.0, of(spec.mtp_layers) / of(std::max<uint64_t>(spec.mtp_layers_per_step, 1)));
  double bytes = (last.mtp_bytes + share * last.mtp_expert_bytes) / steps + last.head_bytes;
  if (const KvLayer* layer = subject_->cache.last_attention(); layer != nullptr)
    bytes += of(ceil_div(sequences, layout_.dp)) * of(layer->read_bytes(context, kv_element_bytes)) /
             of(std::min(layer->heads, layout_.tp));
  return bytes / device_->memory_bandwidth;
}

StepTime StepModel::prefill(uint64_t tokens) const {
  StepTime time;
  const double share = routing_ ? routing_->busiest_share(of(tokens), layout_.ep) : 0;
  if (routing_) time.distinct_experts = routing_->distinct(of(tokens));
  const auto layers = of(std::max<uint64_t>(subject_->spec.layers.size(), 1));
  const AttentionFlops attention = prefill_attention_flops(subject_->spec, tokens);
  const double a_layer = (attention.heads / of(layout_.tp) + attention.indexer) / layers;
  for (const StageLoad& stage : stages_) {
    const double weights = stage.fixed_bytes + share * stage.expert_bytes;
    // One group of TP GPUs has the prompt; of its tokens only the last needs the head.
    const double flops = of(tokens) * (stage.fixed_flops + stage.expert_flops * rank_load_ / of(layout_.stage_gpus())) +
                         stage.head_flops + a_layer * of(stage.last - stage.first);
    add_work(weights, 0, flops, &time);
    add_exchange(stage, of(tokens), of(tokens) / of(layout_.tp), &time);
  }
  return time;
}

StepTime StepModel::step(uint64_t sequences, uint64_t context, uint64_t kv_element_bytes, uint64_t tokens) const {
  const ModelSpec& spec = subject_->spec;
  const auto& layers = subject_->cache.layers();
  StepTime time;
  const uint64_t all_tokens = sequences * tokens;
  const double share = routing_ ? routing_->busiest_share(of(all_tokens), layout_.ep) : 0;
  if (routing_) time.distinct_experts = routing_->distinct(of(all_tokens));
  const double group_sequences = of(ceil_div(sequences, layout_.dp));
  const AttentionFlops attention = decode_attention_flops(spec, context);
  const double a_layer =
      (attention.heads / of(layout_.tp) + attention.indexer) / of(std::max<uint64_t>(layers.size(), 1));
  for (const StageLoad& stage : stages_) {
    double kv = 0;
    for (uint64_t i = stage.first; i < stage.last; ++i)
      kv += of(layers[i].read_bytes(context, kv_element_bytes)) / of(std::min(layers[i].heads, layout_.tp));
    kv *= group_sequences;
    const double weights = stage.fixed_bytes + share * stage.expert_bytes;
    const double flops =
        group_sequences * of(tokens) * (stage.fixed_flops + stage.head_flops + a_layer * of(stage.last - stage.first)) +
        of(all_tokens) * stage.expert_flops * rank_load_ / of(layout_.stage_gpus());
    const double before = time.total();
    add_work(weights, kv, flops, &time);
    add_exchange(stage, of(all_tokens) / of(layout_.dp), of(all_tokens) / of(layout_.stage_gpus()), &time);
    time.slowest_stage = std::max(time.slowest_stage, time.total() - before);
  }
  return time;
}

}  // namespace nibble
