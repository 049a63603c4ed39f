#include "nibble/plan/exchange.h"

#include <algorithm>
#include <cmath>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"

namespace nibble {
namespace {

constexpr double kActivationBytes = 2, kTokenBytes = 4;

double of(uint64_t number) { return static_cast<double>(number); }

// Different ones among `parts` equal parts that k choices fall on.
double different(double parts, double choices) { return parts * -std::expm1(choices * std::log1p(-1 / parts)); }

}  // namespace

Exchange::Exchange(const ModelSpec& spec, const Layout& layout, const Device& device, uint64_t gpus_per_machine,
                   double rank_load)
    : layout_(layout),
      domain_(device.linked(gpus_per_machine)),
      link_{device.link_bandwidth, device.link_latency},
      card_{device.nic_bandwidth, device.nic_latency},
      hidden_bytes_(of(spec.hidden) * kActivationBytes),
      expert_bytes_(of(spec.expert_width()) * kActivationBytes),
      chosen_(spec.experts == 0 ? 0 : of(spec.experts_per_token)),
      rank_load_(rank_load) {
  NIBBLE_CHECK(layout.gpus() == 1 || device.has_wires());
  // With one kind of wire all GPUs are one domain of it.
  if (link_.bandwidth > 0 && card_.bandwidth > 0) return;
  if (link_.bandwidth <= 0) link_ = card_;
  domain_ = std::max<uint64_t>(layout.gpus(), 1);
}

uint64_t Exchange::domains_of(uint64_t size, uint64_t groups) const {
  const uint64_t least = ceil_div(size, domain_);
  const uint64_t rest = size % domain_;
  if (rest == 0) return least;
  // Whole domains, and as many rests in a domain as it holds.
  const uint64_t needed = groups * (size / domain_) + ceil_div(groups, domain_ / rest);
  return needed <= ceil_div(layout_.gpus(), domain_) ? least : least + 1;
}

double Exchange::all_reduce(double group_tokens) const {
  if (layout_.tp == 1) return 0;
  const double bytes = group_tokens * hidden_bytes_;
  const double parts = of(layout_.tp);
  const double domains = of(domains_of(layout_.tp, layout_.dp * layout_.pp));
  const double inside = 2 * (parts - 1) / parts * bytes / link_.bandwidth;
  if (domains <= 1) return inside + 2 * link_.latency;
  const double across = 2 * (domains - 1) / domains * bytes / (parts / domains) / card_.bandwidth;
  return std::max(inside, across) + 2 * (link_.latency + card_.latency);
}

double Exchange::experts(double group_tokens, double stage_tokens, uint64_t over_domains) const {
  if (layout_.ep == 1 || chosen_ == 0) return 0;
  const double ranks = of(layout_.ep);
  const double ranks_met = different(ranks, chosen_);
  // No rank gets more than every token.
  const double load = std::min(rank_load_, ranks / ranks_met);
  const double mine = std::max(group_tokens / of(layout_.tp), stage_tokens / of(layout_.stage_gpus()) * load);
  // To all GPUs of the ranks met but the one it lies on, which belongs to one of them in one of `ranks` cases.
  const double copies = ranks_met * (of(layout_.expert_parts()) - 1 / ranks);
  double seconds = mine * copies * expert_bytes_ / link_.bandwidth;
  if (over_domains <= 1) return 2 * (seconds + link_.latency);
  const double domains = of(over_domains);
  // A domain holds several ranks, or a part of one: it is met as often as they are.
  const double apart = std::min(ranks, domains);
  const double across = (domains - 1) * different(apart, chosen_) / apart;
  seconds = std::max(seconds, mine * across * expert_bytes_ / card_.bandwidth);
  return 2 * (seconds + link_.latency + card_.latency);
}

const Exchange::Wire& Exchange::wire(uint64_t from, uint64_t to) const {
  const uint64_t gpus = layout_.stage_gpus();
  return from * gpus / domain_ == to * gpus / domain_ ? link_ : card_;
}

double Exchange::hand_over(double group_tokens, uint64_t stage) const {
  if (stage + 1 >= layout_.pp) return 0;
  const Wire& way = wire(stage, stage + 1);
  return way.latency + group_tokens * hidden_bytes_ / of(layout_.tp) / way.bandwidth;
}

double Exchange::hand_back(double group_tokens) const {
  if (layout_.pp == 1) return 0;
  const Wire& way = wire(layout_.pp - 1, 0);
  return way.latency + group_tokens * kTokenBytes / way.bandwidth;
}

}  // namespace nibble
