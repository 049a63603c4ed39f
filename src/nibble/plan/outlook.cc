#include "nibble/plan/outlook.h"

#include <algorithm>
#include <cmath>

#include "nibble/base/checked_math.h"
#include "nibble/ledger/routing.h"
#include "nibble/plan/exchange.h"

namespace nibble {
namespace {

double of(uint64_t number) { return static_cast<double>(number); }

// Tokens that a step of K drafts brings if each is accepted with probability a: 1 + a + … + a^K.
double tokens_of(double acceptance, uint64_t drafts) {
  double sum = 0;
  double power = 1;
  for (uint64_t i = 0; i <= drafts; ++i, power *= acceptance) sum += power;
  return sum;
}

std::vector<uint64_t> contexts_up_to(uint64_t most, uint64_t asked) {
  std::vector<uint64_t> contexts;
  for (const uint64_t context : {uint64_t{1024}, uint64_t{8192}, uint64_t{32768}, uint64_t{131072}}) {
    if (context <= most) contexts.push_back(context);
  }
  if (std::find(contexts.begin(), contexts.end(), asked) == contexts.end()) contexts.push_back(asked);
  std::sort(contexts.begin(), contexts.end());
  return contexts;
}

}  // namespace

std::vector<DecodePoint> decode_curve(const StepModel& model, const PlanRequest& request, uint64_t max_positions) {
  std::vector<DecodePoint> points;
  for (const uint64_t context : contexts_up_to(std::max(max_positions, request.context), request.context)) {
    for (uint64_t batch = 1; batch <= 512; batch *= 2)
      points.push_back({batch, context, model.step(batch, context, request.kv_element_bytes),
                        model.tokens_per_second(batch, context, request.kv_element_bytes), true});
  }
  return points;
}

std::vector<PrefillPoint> prefill_curve(const StepModel& model, uint64_t max_positions) {
  std::vector<PrefillPoint> points;
  for (uint64_t tokens = 128; tokens <= 131072; tokens *= 4) {
    if (max_positions == 0 || tokens <= max_positions) points.push_back({tokens, model.prefill(tokens)});
  }
  return points;
}

AnswerTime answer_time(const StepModel& model, const PlanRequest& request, const Device& device, Scheme scheme) {
  AnswerTime answer;
  answer.tokens = request.answer;
  answer.first_context = request.context > request.answer ? request.context - request.answer : 0;
  // A step's time is linear in the context between the knees of windows: the trapezoidal rule over 512 pieces is exact
  // but for the pieces with a knee.
  constexpr uint64_t kPieces = 512;
  const uint64_t pieces = std::min<uint64_t>(kPieces, std::max<uint64_t>(answer.tokens, 1));
  for (uint64_t i = 0; i <= pieces; ++i) {
    const auto context =
        answer.first_context + static_cast<uint64_t>(std::llround(of(answer.tokens) * of(i) / of(pieces)));
    const double weight = of(answer.tokens) / of(pieces) * (i == 0 || i == pieces ? 0.5 : 1.0);
    const Prediction step = predict(model.step(1, context, request.kv_element_bytes), device, scheme);
    answer.seconds.floor += weight * step.floor;
    answer.seconds.low += weight * step.low;
    answer.seconds.high += weight * step.high;
  }
  return answer;
}

Speculation speculate(const StepModel& model, const PlanRequest& request) {
  Speculation result;
  result.drafts = request.draft;
  const StepTime plain = model.step(request.concurrency, request.context, request.kv_element_bytes);
  const StepTime verify = model.step(request.concurrency, request.context, request.kv_element_bytes, request.draft + 1);
  result.distinct_before = plain.distinct_experts;
  result.distinct_after = verify.distinct_experts;
  result.step_seconds = plain.total();
  result.verify_seconds = verify.total();
  result.draft_seconds =
      of(request.draft) * model.draft_read(request.concurrency, request.context, request.kv_element_bytes);
  const double cost = (result.verify_seconds + result.draft_seconds) / result.step_seconds;
  for (const double acceptance : {0.5, 0.6, 0.7, 0.8, 0.9})
    result.speedup.emplace_back(acceptance, tokens_of(acceptance, request.draft) / cost);
  if (tokens_of(1, request.draft) <= cost) return result;
  double low = 0;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (tokens_of(middle, request.draft) < cost ? low : high) = middle;
  }
  result.break_even = high;
  return result;
}

std::optional<ExchangeTime> exchange_time(const Plan& plan) {
  const ModelSpec& spec = plan.subject->spec;
  Layout layout = plan.chosen->layout;
  if (layout.ep == 1) layout.ep = layout.stage_gpus();
  if (spec.experts == 0 || layout.ep == 1 || spec.experts % layout.ep != 0) return std::nullopt;
  const PlanRequest& request = plan.request;
  const double load = Routing(spec.experts, spec.experts_per_token, request.skew).rank_load(layout.ep);
  const Exchange exchange(spec, layout, plan.device, request.gpus_per_machine, load);
  ExchangeTime time;
  time.tokens = request.concurrency;
  time.ranks = layout.ep;
  time.domains = exchange.domains();
  double layers = 0;
  for (const LayerSpec& layer : spec.layers) layers += layer.mlp == MlpKind::kMoe ? 1 : 0;
  const double group = of(ceil_div(request.concurrency, layout.dp));
  const auto over = [&](uint64_t domains) {
    return layers * exchange.experts(group, of(request.concurrency), domains);
  };
  time.one_domain = over(1);
  time.two_domains = plan.device.link_bandwidth > 0 && plan.device.nic_bandwidth > 0 ? over(2) : 0;
  time.as_laid_out = over(time.domains);
  return time;
}

}  // namespace nibble
