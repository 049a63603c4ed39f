// What follows from a layout: curves over batch and context, one long answer, drafting, exchange between GPUs.
#pragma once

#include <vector>

#include "nibble/plan/plan.h"

namespace nibble {

std::vector<DecodePoint> decode_curve(const StepModel& model, const PlanRequest& request, uint64_t max_positions);
std::vector<PrefillPoint> prefill_curve(const StepModel& model, uint64_t max_positions);
AnswerTime answer_time(const StepModel& model, const PlanRequest& request, const Device& device, Scheme scheme);
Speculation speculate(const StepModel& model, const PlanRequest& request);
// Nothing for one GPU, and for a model without experts or with a number of them that the GPUs do not divide.
std::optional<ExchangeTime> exchange_time(const Plan& plan);

}  // namespace nibble
