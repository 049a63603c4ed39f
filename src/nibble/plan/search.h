// All layouts of a number of GPUs that are legal and fit, best first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nibble/hardware/device.h"
#include "nibble/plan/legality.h"
#include "nibble/plan/memory.h"
#include "nibble/plan/request.h"
#include "nibble/plan/step_time.h"
#include "nibble/plan/subject.h"

namespace nibble {

struct LayoutPlan {
  Layout layout;
  MemoryPlan memory;
  StepTime step;                 // at the asked concurrency and context
  uint64_t most_sequences = 0;   // for the throughput target
  double tokens_per_second = 0;  // at the asked concurrency; with the throughput target at most_sequences
};

struct RefusedLayout {
  Layout layout;
  LayoutRefusal refusal;
};

struct SearchResult {
  std::vector<LayoutPlan> plans;       // that fit, best first
  std::vector<RefusedLayout> refused;  // illegal, one reason each
  std::vector<LayoutPlan> too_large;   // legal, but memory does not do; least missing first
};

// Layouts of `gpus` GPUs; with any of request.tp, ep, pp, dp those that have these numbers.
SearchResult search_layouts(const Subject& subject, const WeightGroups& weights, const Device& device,
                            const PlanRequest& request, uint64_t gpus, double flops);

// Is there one that is legal and fits? Stops at the first.
bool any_layout_fits(const Subject& subject, const WeightGroups& weights, const Device& device,
                     const PlanRequest& request, uint64_t gpus);

}  // namespace nibble
