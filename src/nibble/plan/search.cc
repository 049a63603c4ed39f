#include "nibble/plan/search.h"

#include <algorithm>

#include "nibble/plan/launch.h"

namespace nibble {
namespace {

std::vector<uint64_t> divisors(uint64_t number) {
  std::vector<uint64_t> list;
  for (uint64_t d = 1; d <= number; ++d) {
    if (number % d == 0) list.push_back(d);
  }
  return list;
}

bool matches(const std::optional<uint64_t>& asked, uint64_t ways) { return !asked || *asked == ways; }

std::vector<Layout> candidates(const ModelSpec& spec, const PlanRequest& request, uint64_t gpus) {
  std::vector<Layout> layouts;
  for (const uint64_t pp : divisors(gpus)) {
    if (!matches(request.pp, pp)) continue;
    for (const uint64_t tp : divisors(gpus / pp)) {
      const uint64_t dp = gpus / pp / tp;
      if (!matches(request.tp, tp) || !matches(request.dp, dp)) continue;
      for (const uint64_t ep : divisors(tp * dp)) {
        if (!can_launch(request.engine, {tp, ep, pp, dp})) continue;
        if (!matches(request.ep, ep) || (!request.ep && spec.experts == 0 && ep > 1)) continue;
        layouts.push_back({tp, ep, pp, dp});
      }
    }
  }
  return layouts;
}

void set_rate(const Subject& subject, const WeightGroups& weights, const StepModel& model, const Device& device,
              const PlanRequest& request, LayoutPlan* plan) {
  plan->step = model.step(request.concurrency, request.context, request.kv_element_bytes);
  uint64_t sequences = request.concurrency;
  StepTime step = plan->step;
  if (request.target == PlanTarget::kThroughput) {
    plan->most_sequences = most_sequences(subject, weights, plan->layout, device, request);
    sequences = std::max<uint64_t>(plan->most_sequences, 1);
    step = model.step(sequences, request.context, request.kv_element_bytes);
  }
  // A pipeline that is kept full gives a step for every slowest stage.
  const double seconds = plan->layout.pp > 1 ? step.slowest_stage * static_cast<double>(plan->layout.pp) : step.total();
  plan->tokens_per_second = static_cast<double>(sequences) / seconds;
}

}  // namespace

SearchResult search_layouts(const Subject& subject, const WeightGroups& weights, const Device& device,
                            const PlanRequest& request, uint64_t gpus, double flops) {
  SearchResult result;
  const LayoutRules rules(subject.spec, weights);
  for (const Layout& layout : candidates(subject.spec, request, gpus)) {
    auto refusals = rules.check(layout, true);
    if (!refusals.empty()) {
      result.refused.push_back({layout, std::move(refusals.front())});
      continue;
    }
    LayoutPlan plan;
    plan.layout = layout;
    plan.memory = plan_memory(subject, weights, layout, device, request);
    if (!plan.memory.fits()) {
      result.too_large.push_back(plan);
      continue;
    }
    const StepModel model(subject, weights, layout, device, request.gpus_per_machine, flops, request.skew);
    set_rate(subject, weights, model, device, request, &plan);
    result.plans.push_back(plan);
  }
  const bool throughput = request.target == PlanTarget::kThroughput;
  std::stable_sort(result.plans.begin(), result.plans.end(), [&](const LayoutPlan& a, const LayoutPlan& b) {
    return throughput ? a.tokens_per_second > b.tokens_per_second : a.step.total() < b.step.total();
  });
  std::stable_sort(result.too_large.begin(), result.too_large.end(),
                   [](const LayoutPlan& a, const LayoutPlan& b) { return a.memory.total() < b.memory.total(); });
  return result;
}

bool any_layout_fits(const Subject& subject, const WeightGroups& weights, const Device& device,
                     const PlanRequest& request, uint64_t gpus) {
  const LayoutRules rules(subject.spec, weights);
  for (const Layout& layout : candidates(subject.spec, request, gpus)) {
    if (rules.check(layout, true).empty() && plan_memory(subject, weights, layout, device, request).fits()) return true;
  }
  return false;
}

}  // namespace nibble
