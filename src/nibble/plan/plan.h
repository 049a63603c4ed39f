// The whole answer of `nibble plan`, as data; report_*.h words it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nibble/hardware/device.h"
#include "nibble/plan/format_row.h"
#include "nibble/plan/request.h"
#include "nibble/plan/scheme.h"
#include "nibble/plan/search.h"
#include "nibble/plan/subject.h"

namespace nibble {

// Seconds, from the vendor's ceilings; with measured ones [low, high].
struct Prediction {
  double floor = 0;
  double low = 0, high = 0;  // both 0: the device was never measured
};

struct DecodePoint {
  uint64_t batch = 0, context = 0;
  StepTime step;
  double tokens_per_second = 0;
  bool fits = true;  // memory does for so many sequences of so many tokens
};

struct PrefillPoint {
  uint64_t tokens = 0;
  StepTime time;
};

// Drafting `drafts` tokens a step and verifying them together with the next one.
struct Speculation {
  uint64_t drafts = 0;
  double distinct_before = 0, distinct_after = 0;  // experts of a layer
  double step_seconds = 0, verify_seconds = 0, draft_seconds = 0;
  // A draft accepted with probability a, one after the other: below this a, drafting costs more than it brings. None:
  // it loses at any.
  std::optional<double> break_even;
  std::vector<std::pair<double, double>> speedup;  // acceptance, tokens a second over those without drafts
};

// One answer of a thinking model, one sequence, its cache growing.
struct AnswerTime {
  uint64_t tokens = 0, first_context = 0;
  Prediction seconds;
};

// What the experts' exchange of a step takes, all layers, if they are dealt out over the GPUs of a stage: on one
// machine, over two, and as many as the plan has. What one machine saves is the difference.
struct ExchangeTime {
  uint64_t tokens = 0, ranks = 0, domains = 1;
  double one_domain = 0, two_domains = 0, as_laid_out = 0;  // seconds
};

struct Change {
  std::string what;    // "--concurrency 12"
  std::string effect;  // "needs 97.1 GB of 141.0 GB a GPU"
};

struct Plan {
  PlanRequest request;
  Device device;
  uint64_t gpus = 0;
  bool gpus_chosen = false;                // not asked for
  std::shared_ptr<const Subject> subject;  // null with --total
  std::vector<FormatRow> rows;
  size_t detail = 0;  // the row that the rest is about
  bool fits = false;

  // With a model:
  bool detail_is_dense = false;                 // its routed experts have 16 bits or more
  std::vector<WeightItem> items;                // in the detail row's format
  std::shared_ptr<const WeightGroups> weights;  // the same, by kinds
  std::optional<Scheme> scheme;
  SearchResult search;
  std::optional<LayoutPlan> chosen;  // the best that fits, else the least that does not
  SchemePlan schemes;
  std::vector<DecodePoint> decode;
  std::vector<PrefillPoint> prefill;                                            // in `scheme`
  std::vector<std::pair<Scheme, std::vector<PrefillPoint>>> prefill_by_scheme;  // in all that the device has
  std::optional<Prediction> step;  // of the chosen layout, at the asked batch and context
  std::optional<AnswerTime> answer;
  std::optional<Speculation> speculation;
  std::optional<ExchangeTime> exchange;
  std::vector<Change> changes;  // if it does not fit
  std::vector<std::string> notes;
};

// Error on what cannot be planned at all; layouts that are refused and plans that do not fit are answers.
Plan make_plan(const PlanRequest& request);
// Of a model that was loaded already; null: of request.total and request.active.
Plan make_plan(const PlanRequest& request, std::shared_ptr<const Subject> subject);

// --gpu: a catalog name, or a file of the catalog's form (`nibble bench --calibrate`).
Device load_device(const std::string& name);

// Floor and, with measured ceilings, the interval of a step.
Prediction predict(const StepTime& time, const Device& device, Scheme scheme);

}  // namespace nibble
