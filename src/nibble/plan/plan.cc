#include "nibble/plan/plan.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/base/strings.h"
#include "nibble/numerics/published_formats.h"
#include "nibble/plan/changes.h"
#include "nibble/plan/model_rows.h"
#include "nibble/plan/outlook.h"

namespace nibble {
namespace {

bool is_device_file(const std::string& name) {
  std::error_code ignored;
  return ends_with(name, ".json") || std::filesystem::is_regular_file(Path(name), ignored);
}

bool layout_asked(const PlanRequest& request) { return request.tp || request.ep || request.pp || request.dp; }

// GPUs of the layout asked for; a number that is not given is 1, but EP across more GPUs than TP implies DP.
uint64_t gpus_of_layout(const PlanRequest& request) {
  const uint64_t tp = request.tp.value_or(1);
  const uint64_t ep = request.ep.value_or(1);
  const uint64_t dp = request.dp.value_or(ep > tp && ep % tp == 0 ? ep / tp : 1);
  return tp * dp * request.pp.value_or(1);
}

std::vector<std::string> formats_of(const PlanRequest& request, const Subject* subject) {
  if (!request.formats.empty()) return request.formats;
  std::vector<std::string> formats;
  if (subject != nullptr && !subject->released.empty()) formats.emplace_back("released");
  for (const std::string_view name : published_formats()) formats.emplace_back(name);
  return formats;
}

bool is_low_bit_release(const FormatRow& row) { return row.format == "released" && row.size.value_bytes != 0; }

// The row that is wanted whatever fits: the first possible one of those asked for, or a release that is low-bit; null:
// whichever is smallest.
const FormatRow* wanted_row(const PlanRequest& request, const std::vector<FormatRow>& rows) {
  for (const FormatRow& row : rows) {
    if (row.refused.empty() && (!request.formats.empty() || is_low_bit_release(row))) return &row;
  }
  return nullptr;
}

// The row that the rest of the plan is about: the wanted one. If it does not fit, of those asked for the first that
// does, without any asked for the smallest; if none does the wanted one again, so that its proposals are shown.
size_t detail_row(const PlanRequest& request, const std::vector<FormatRow>& rows) {
  const FormatRow* wanted = wanted_row(request, rows);
  const auto better = [&](const FormatRow& a, const FormatRow& b) {
    if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
    if (a.fits != b.fits) return a.fits;
    if (&a == wanted || &b == wanted) return &a == wanted;
    return request.formats.empty() && a.size.weight_bytes < b.size.weight_bytes;
  };
  size_t best = 0;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (better(rows[i], rows[best])) best = i;
  }
  return best;
}

uint64_t smallest(const std::vector<FormatRow>& rows) {
  uint64_t bytes = UINT64_MAX;
  for (const FormatRow& row : rows) {
    if (row.refused.empty()) bytes = std::min(bytes, row.size.weight_bytes);
  }
  return bytes;
}

// GPUs are chosen for the wanted row, without one for the smallest.
void choose_gpus(const PlanRequest& request, Plan* plan) {
  if (request.gpus != 0) {
    plan->gpus = request.gpus;
    return;
  }
  if (layout_asked(request)) {
    plan->gpus = gpus_of_layout(request);
    return;
  }
  plan->gpus_chosen = true;
  const FormatRow* wanted = wanted_row(request, plan->rows);
  const uint64_t bytes = wanted != nullptr ? wanted->size.weight_bytes : smallest(plan->rows);
  plan->gpus = std::min(kMostGpus, usual_gpus(static_cast<double>(bytes), usable_bytes(plan->device, request.reserve),
                                              request.gpus_per_machine));
}

void refuse_all_rows(const std::vector<FormatRow>& rows) {
  for (const FormatRow& row : rows) {
    if (row.refused.empty()) return;
  }
  throw Error("none of the formats can hold this model: " + rows.front().refused);
}

// Options that need a model's shapes.
void note_ignored(const PlanRequest& request, std::vector<std::string>* notes) {
  const PlanRequest plain;
  std::string ignored;
  const auto add = [&](const char* option, bool given) {
    if (given) ignored += (ignored.empty() ? "" : ", ") + std::string(option);
  };
  add("--context", request.context != plain.context);
  add("--concurrency", request.concurrency != plain.concurrency);
  add("--kv", request.kv_element_bytes != plain.kv_element_bytes);
  add("--target", request.target != plain.target);
  add("--draft", request.draft != plain.draft);
  add("--answer", request.answer != plain.answer);
  add("--skew", request.skew != plain.skew);
  if (!ignored.empty()) notes->push_back("without the shapes of a model these options change nothing: " + ignored);
}

void plan_flat(Plan* plan) {
  const PlanRequest& request = plan->request;
  note_ignored(request, &plan->notes);
  for (const std::string& format : formats_of(request, nullptr)) {
    FormatRow row;
    row.format = row.title = format;
    row.size = flat_size(*request.total, *request.active, format);
    plan->rows.push_back(std::move(row));
  }
  choose_gpus(request, plan);
  for (FormatRow& row : plan->rows) rate(plan->device, request, plan->gpus, &row);
  plan->detail = detail_row(request, plan->rows);
}

// A row fits if a layout of it does.
void rate_row(const WeightGroups& weights, const Plan& plan, FormatRow* row) {
  if (!row->refused.empty()) return;
  rate(plan.device, plan.request, plan.gpus, row);
  row->fits = any_layout_fits(*plan.subject, weights, plan.device, plan.request, plan.gpus);
}

void rate_rows(const std::vector<std::shared_ptr<const WeightGroups>>& weights, Plan* plan) {
  for (size_t i = 0; i < plan->rows.size(); ++i) rate_row(*weights[i], *plan, &plan->rows[i]);
}

// With GPUs to choose: more of them until a layout fits with everything, not the weights alone. `weights` have been
// rated for as many as there are, and are again in the end.
void add_gpus(const std::vector<std::shared_ptr<const WeightGroups>>& weights, Plan* plan) {
  const FormatRow* wanted = wanted_row(plan->request, plan->rows);
  const auto fits = [&] {
    return wanted != nullptr
               ? wanted->fits
               : std::any_of(plan->rows.begin(), plan->rows.end(), [](const FormatRow& row) { return row.fits; });
  };
  const uint64_t most = most_gpus(plan->request.gpus_per_machine);
  const uint64_t asked = plan->gpus;
  while (!fits() && plan->gpus < most && plan->device.has_wires()) {
    plan->gpus = next_gpus(plan->gpus, plan->request.gpus_per_machine);
    for (size_t i = 0; i < plan->rows.size(); ++i) {
      if (wanted == nullptr || wanted == &plan->rows[i]) rate_row(*weights[i], *plan, &plan->rows[i]);
    }
  }
  if (!fits()) plan->gpus = asked;
  if (plan->gpus != asked || !fits()) rate_rows(weights, plan);
}

void search_detail(Plan* plan) {
  plan->search = search_layouts(*plan->subject, *plan->weights, plan->device, plan->request, plan->gpus,
                                scheme_peak(*plan->scheme, plan->device));
  if (!plan->search.plans.empty()) {
    plan->chosen = plan->search.plans.front();
  } else if (!plan->search.too_large.empty()) {
    plan->chosen = plan->search.too_large.front();
  }
}

void mark_what_fits(Plan* plan) {
  for (DecodePoint& point : plan->decode) {
    PlanRequest asked = plan->request;
    asked.concurrency = point.batch;
    asked.context = point.context;
    point.fits = plan_memory(*plan->subject, *plan->weights, plan->chosen->layout, plan->device, asked).fits();
  }
}

void set_outlook(Plan* plan) {
  const PlanRequest& request = plan->request;
  const Subject& subject = *plan->subject;
  const StepModel model(subject, *plan->weights, plan->chosen->layout, plan->device, request.gpus_per_machine,
                        scheme_peak(*plan->scheme, plan->device), request.skew);
  // The search has timed what fits.
  if (plan->chosen->tokens_per_second <= 0) {
    plan->chosen->step = model.step(request.concurrency, request.context, request.kv_element_bytes);
    plan->chosen->tokens_per_second =
        model.tokens_per_second(request.concurrency, request.context, request.kv_element_bytes);
  }
  plan->step = predict(plan->chosen->step, plan->device, *plan->scheme);
  plan->decode = decode_curve(model, request, subject.spec.max_positions);
  mark_what_fits(plan);
  plan->prefill = prefill_curve(model, subject.spec.max_positions);
  for (const SchemeTime& time :
       plan->schemes.choices.empty() ? std::vector<SchemeTime>{} : plan->schemes.choices[0].times) {
    if (!time.obstacle.empty()) continue;
    const StepModel other(subject, *plan->weights, plan->chosen->layout, plan->device, request.gpus_per_machine,
                          scheme_peak(time.scheme, plan->device), request.skew);
    plan->prefill_by_scheme.emplace_back(time.scheme, prefill_curve(other, subject.spec.max_positions));
  }
  if (request.answer != 0) plan->answer = answer_time(model, request, plan->device, *plan->scheme);
  if (request.draft != 0) {
    plan->speculation = speculate(model, request);
    if (subject.counts.mtp == 0)
      plan->notes.emplace_back(
          "the model has no MTP layers: the drafts come from elsewhere, and their cost is not counted");
  }
  plan->exchange = exchange_time(*plan);
}

void check_context(Plan* plan) {
  const uint64_t most = plan->subject->spec.max_positions;
  if (most != 0 && plan->request.context > most)
    plan->notes.push_back("the context of " + with_commas(plan->request.context) +
                          " tokens is beyond the model's own limit of " + with_commas(most));
}

// Several of a device need a way between them; where the number is free, one is planned for.
void check_wires(Plan* plan) {
  if (plan->gpus <= 1 || plan->device.has_wires()) return;
  if (plan->gpus_chosen) {
    plan->gpus = 1;
    return;
  }
  Error error("no way between several of this device is known");
  if (is_device_file(plan->request.gpu)) error.file(plan->request.gpu);
  throw std::move(error.value("device", plan->device.name)
                      .value("gpus", plan->gpus)
                      .way_out("plan for one of them")
                      .way_out("--gpu FILE with its link_bandwidth or nic_bandwidth"));
}

void plan_model(std::shared_ptr<const Subject> subject, Plan* plan) {
  const PlanRequest& request = plan->request;
  plan->subject = std::move(subject);
  plan->notes = plan->subject->notes;
  check_context(plan);
  std::vector<ModelRow> rows = model_rows(*plan->subject, formats_of(request, plan->subject.get()));
  for (const ModelRow& made : rows) plan->rows.push_back(made.row);
  refuse_all_rows(plan->rows);
  choose_gpus(request, plan);
  check_wires(plan);
  std::vector<std::shared_ptr<const WeightGroups>> weights;
  weights.reserve(rows.size());
  for (ModelRow& made : rows) weights.push_back(std::make_shared<const WeightGroups>(plan->subject->spec, made.items));
  rate_rows(weights, plan);
  if (plan->gpus_chosen) add_gpus(weights, plan);
  plan->detail = detail_row(request, plan->rows);
  ModelRow& detail = rows[plan->detail];
  plan->items = std::move(detail.items);
  plan->weights = weights[plan->detail];
  plan->detail_is_dense = detail.format.is_dense();
  plan->scheme = plain_scheme(detail.format, plan->device);
  search_detail(plan);
  plan->schemes = plan_schemes(*plan->subject, detail.format, plan->chosen ? plan->chosen->layout : Layout{},
                               plan->device, request.concurrency, request.skew);
  if (plan->chosen) set_outlook(plan);
}

}  // namespace

Device load_device(const std::string& name) {
  if (is_device_file(name)) return parse_device(read_json(Path(name), uint64_t{1} << 20), name);
  return find_device(name);
}

Prediction predict(const StepTime& time, const Device& device, Scheme scheme) {
  Prediction prediction;
  prediction.floor = time.total();
  if (!device.measured_read) return prediction;
  const auto& matrix = measured_peak(scheme, device);
  const double peak = scheme_peak(scheme, device);
  const auto at = [&](double read_rate, double flops) {
    return std::max(time.read * device.memory_bandwidth / read_rate, flops > 0 ? time.compute * peak / flops : 0) +
           time.exchange;
  };
  prediction.low = at(device.measured_read->high, matrix ? matrix->high : peak);
  prediction.high = at(device.measured_read->low, matrix ? matrix->low : peak);
  return prediction;
}

Plan make_plan(const PlanRequest& request, std::shared_ptr<const Subject> subject) {
  Plan plan;
  plan.request = request;
  plan.device = load_device(request.gpu);
  if (subject == nullptr) {
    plan_flat(&plan);
  } else {
    plan_model(std::move(subject), &plan);
  }
  for (const FormatRow& row : plan.rows) plan.fits = plan.fits || row.fits;
  if (!plan.fits) plan.changes = propose_changes(plan);
  return plan;
}

Plan make_plan(const PlanRequest& request) {
  if (request.model.empty()) return make_plan(request, nullptr);
  return make_plan(request, std::make_shared<const Subject>(load_subject(request.model)));
}

}  // namespace nibble
