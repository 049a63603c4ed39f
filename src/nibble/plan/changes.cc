#include "nibble/plan/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/numerics/cache_types.h"
#include "nibble/numerics/published_formats.h"
#include "nibble/plan/flat_changes.h"
#include "nibble/plan/model_rows.h"

namespace nibble {
namespace {

class Proposer {
 public:
  explicit Proposer(const Plan& plan) : plan_(plan) {}

  std::vector<Change> run() {
    another_layout();
    fewer_sequences();
    shorter_context();
    for (const CacheType& type : cache_types())
      try_request(fmt::format("--kv {}", type.name), type.element_bytes < plan_.request.kv_element_bytes,
                  [&](PlanRequest* request) { request->kv_element_bytes = type.element_bytes; });
    other_formats();
    more_gpus();
    larger_devices();
    try_request("--reserve 0.1", plan_.request.reserve > 0.1, [](PlanRequest* request) { request->reserve = 0.1; });
    more_of_larger_devices();
    lighter_loads();
    return std::move(changes_);
  }

 private:
  bool enough() const { return changes_.size() >= kProposals; }

  // The best layout of the changed plan, if one fits.
  std::optional<LayoutPlan> fits(const PlanRequest& request, const Device& device, uint64_t gpus) const {
    return fits(request, device, gpus, *plan_.weights);
  }
  std::optional<LayoutPlan> fits(const PlanRequest& request, const Device& device, uint64_t gpus,
                                 const WeightGroups& weights) const {
    if (gpus > 1 && !device.has_wires()) return std::nullopt;
    if (!any_layout_fits(*plan_.subject, weights, device, request, gpus)) return std::nullopt;
    const double flops = plan_.scheme ? scheme_peak(*plan_.scheme, device) : 0;
    auto found = search_layouts(*plan_.subject, weights, device, request, gpus, flops);
    if (found.plans.empty()) return std::nullopt;
    return found.plans.front();
  }

  void add(std::string what, const LayoutPlan& made) {
    changes_.push_back({std::move(what), fmt::format("{}: {} of {} a GPU", made.layout.name(),
                                                     human_bytes(made.memory.total() - made.memory.reserve),
                                                     human_bytes(made.memory.capacity))});
  }

  bool try_request(std::string what, bool possible, const std::function<void(PlanRequest*)>& change) {
    if (enough() || !possible) return false;
    PlanRequest request = plan_.request;
    change(&request);
    const auto made = fits(request, plan_.device, plan_.gpus);
    if (made) add(std::move(what), *made);
    return made.has_value();
  }

  // The largest value below the asked one that fits, by halving and then between.
  void largest_that_fits(const char* option, uint64_t asked, uint64_t step, uint64_t PlanRequest::* field) {
    if (enough()) return;
    const auto fit = [&](uint64_t value) {
      PlanRequest request = plan_.request;
      request.*field = value;
      return fits(request, plan_.device, plan_.gpus);
    };
    uint64_t low = 0;
    uint64_t high = asked / step;
    if (high <= 1 || !fit(step)) return;
    low = 1;
    while (high - low > 1) {
      const uint64_t middle = low + (high - low) / 2;
      (fit(middle * step) ? low : high) = middle;
    }
    add(fmt::format("{} {}", option, low * step), *fit(low * step));
  }

  // Of a layout that was asked for: the best one of as many GPUs.
  void another_layout() {
    PlanRequest free = plan_.request;
    free.tp = free.ep = free.pp = free.dp = std::nullopt;
    const auto made = fits(free, plan_.device, plan_.gpus);
    if (made && !layout_options(made->layout).empty()) add(layout_options(made->layout).substr(1), *made);
  }

  void fewer_sequences() {
    largest_that_fits("--concurrency", plan_.request.concurrency, 1, &PlanRequest::concurrency);
  }
  void shorter_context() { largest_that_fits("--context", plan_.request.context, 1024, &PlanRequest::context); }

  void other_formats() {
    const uint64_t now = plan_.rows[plan_.detail].size.weight_bytes;
    for (const std::string_view name : published_formats()) {
      if (enough()) return;
      // With a second name an impossible format is a row and no error.
      const ModelRow made = std::move(model_rows(*plan_.subject, {std::string(name), std::string(name)}).front());
      if (!made.row.refused.empty() || made.row.size.weight_bytes >= now) continue;
      const auto fit = fits(plan_.request, plan_.device, plan_.gpus, WeightGroups(plan_.subject->spec, made.items));
      if (fit) return add(fmt::format("--format {}", name), *fit);
    }
  }

  void more_gpus() { more_of(plan_.device, ""); }

  // The fewest of the usual numbers of GPUs above this one on which it fits: "--gpu NAME " goes before them for another
  // device.
  void more_of(const Device& device, const std::string& option) { more_of(device, option, plan_.request); }
  void more_of(const Device& device, const std::string& option, PlanRequest free) {
    if (enough()) return;
    free.tp = free.ep = free.pp = free.dp = std::nullopt;
    const uint64_t machine = plan_.request.gpus_per_machine;
    for (uint64_t gpus = next_gpus(plan_.gpus, machine); gpus <= most_gpus(machine); gpus = next_gpus(gpus, machine)) {
      const auto made = fits(free, device, gpus);
      if (made) return add(fmt::format("{}--gpus {}{}", option, gpus, layout_options(made->layout)), *made);
    }
  }

  // What a layout that was asked for has to become.
  std::string layout_options(const Layout& layout) const {
    const PlanRequest& asked = plan_.request;
    if (!asked.tp && !asked.ep && !asked.pp && !asked.dp) return "";
    return fmt::format(" --tp {} --ep {} --pp {} --dp {}", layout.tp, layout.ep, layout.pp, layout.dp);
  }

  bool is_larger(const Device& device) const {
    return device.kind == plan_.device.kind && device.memory_bytes > plan_.device.memory_bytes;
  }

  void larger_devices() {
    for (const Device& device : devices()) {
      if (enough()) return;
      if (!is_larger(device)) continue;
      if (const auto made = fits(plan_.request, device, plan_.gpus)) add(fmt::format("--gpu {}", device.name), *made);
    }
  }

  void more_of_larger_devices() {
    for (const Device& device : devices()) {
      if (!enough() && is_larger(device)) more_of(device, fmt::format("--gpu {} ", device.name));
    }
  }

  // Where no option alone is enough: less of the load together, as it stands and on more GPUs.
  void lighter_loads() {
    PlanRequest light = plan_.request;
    std::string options;
    const auto change = [&](const std::string& option, bool lighter, auto set) {
      if (!lighter || enough()) return;
      set();
      options += (options.empty() ? "" : " ") + option;
      const bool combined = options.find(" --") != std::string::npos;
      if (const auto made = fits(light, plan_.device, plan_.gpus); made && combined)
        add(options, *made);
      else
        more_of(plan_.device, options + " ", light);
    };
    const CacheType& smallest = *std::ranges::min_element(cache_types(), {}, &CacheType::element_bytes);
    change(fmt::format("--kv {}", smallest.name), smallest.element_bytes < light.kv_element_bytes,
           [&] { light.kv_element_bytes = smallest.element_bytes; });
    change("--concurrency 1", light.concurrency > 1, [&] { light.concurrency = 1; });
    change("--context 4096", light.context > 4096, [&] { light.context = 4096; });
    change("--reserve 0.1", light.reserve > 0.1, [&] { light.reserve = 0.1; });
  }

  const Plan& plan_;
  std::vector<Change> changes_;
};

}  // namespace

std::vector<Change> propose_changes(const Plan& plan) {
  return plan.subject ? Proposer(plan).run() : propose_flat_changes(plan);
}

}  // namespace nibble
