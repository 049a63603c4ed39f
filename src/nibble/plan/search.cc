#include "nibble/plan/search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "nibble/plan/launch.h"

namespace nibble {
namespace {

std::vector<uint64_t> divisors(uint64_t number) {
  std::vector<uint64_t> low, high;
  for (uint64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    low.push_back(d);
    if (d != number / d) high.push_back(number / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
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
        if (!matches(request.ep, ep) || (!request.ep && spec.experts == 0 && ep > 1)) continue;
        layouts.push_back({tp, ep, pp, dp});
      }
    }
  }
  return layouts;
}

LayoutRefusal not_told(ServingEngine engine) {
  if (engine == ServingEngine::kVllm)
    return {"vLLM deals the experts out over all GPUs of a stage, or cuts them over all of them",
            {},
            {"EP equal to TP x DP", "EP 1 with DP 1"}};
  return {"SGLang cuts experts over all GPUs of a stage unless it deals them out", {}, {"EP above 1", "DP 1"}};
}

// The numbers asked for do not make a layout of so many GPUs.
RefusedLayout no_candidate(const PlanRequest& request, uint64_t gpus) {
  const Layout asked{request.tp.value_or(1), request.ep.value_or(1), request.pp.value_or(1), request.dp.value_or(1)};
  RefusedLayout refused{asked, {}};
  refused.refusal.reason =
      fmt::format("no layout of {} GPUs has these numbers: TP x PP x DP make the GPUs, EP divides TP x DP", gpus);
  refused.refusal.values = {{"gpus", std::to_string(gpus)}, {"asked", asked.name()}};
  refused.refusal.ways_out = {fmt::format("EP {}", fmt::join(legal_parts(gpus, 1), ", ")),
                              "leave numbers out: they are searched"};
  return refused;
}

void set_rate(const Subject& subject, const WeightGroups& weights, const StepModel& model, const Device& device,
              const PlanRequest& request, LayoutPlan* plan) {
  plan->step = model.step(request.concurrency, request.context, request.kv_element_bytes);
  uint64_t sequences = request.concurrency;
  if (request.target == PlanTarget::kThroughput) {
    plan->most_sequences = most_sequences(subject, weights, plan->layout, device, request);
    sequences = std::max<uint64_t>(plan->most_sequences, 1);
  }
  plan->tokens_per_second = model.tokens_per_second(sequences, request.context, request.kv_element_bytes);
}

// All GPUs together hold the weights and the caches once at least, however they are laid out.
bool might_fit(const Subject& subject, const WeightGroups& weights, const Device& device, const PlanRequest& request,
               uint64_t gpus) {
  const double caches = static_cast<double>(request.concurrency) *
                        static_cast<double>(subject.cache.bytes(request.context, request.kv_element_bytes));
  constexpr double kRounding = 1 - 1e-6;
  return (static_cast<double>(weights.bytes()) + caches) * kRounding <=
         static_cast<double>(device.memory_bytes) * static_cast<double>(gpus);
}

}  // namespace

SearchResult search_layouts(const Subject& subject, const WeightGroups& weights, const Device& device,
                            const PlanRequest& request, uint64_t gpus, double flops) {
  SearchResult result;
  const LayoutRules rules(subject.spec, weights);
  const std::vector<Layout> layouts = candidates(subject.spec, request, gpus);
  if (layouts.empty()) result.refused.push_back(no_candidate(request, gpus));
  for (const Layout& layout : layouts) {
    auto refusals = rules.check(layout, true);
    if (refusals.empty() && !can_launch(request.engine, layout, subject.spec.experts != 0))
      refusals.push_back(not_told(request.engine));
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
  if (!might_fit(subject, weights, device, request, gpus)) return false;
  const LayoutRules rules(subject.spec, weights);
  for (const Layout& layout : candidates(subject.spec, request, gpus)) {
    if (rules.check(layout, true).empty() && can_launch(request.engine, layout, subject.spec.experts != 0) &&
        plan_memory(subject, weights, layout, device, request).fits())
      return true;
  }
  return false;
}

}  // namespace nibble
