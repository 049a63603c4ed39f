#include "nibble/plan/flat_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "nibble/base/strings.h"
#include "nibble/numerics/published_formats.h"
#include "nibble/plan/changes.h"

namespace nibble {
namespace {

constexpr double kSmallReserve = 0.1;

class FlatProposer {
 public:
  explicit FlatProposer(const Plan& plan) : plan_(plan), size_(plan.rows[plan.detail].size) {}

  std::vector<Change> run() {
    smaller_format();
    const PlanRequest& asked = plan_.request;
    more_gpus("", plan_.device, asked);
    const std::vector<const Device*> others = other_devices();
    for (const Device* device : others) add(fmt::format("--gpu {}", device->name), size_, *device, asked, plan_.gpus);
    PlanRequest fuller = asked;
    fuller.reserve = std::min(kSmallReserve, asked.reserve);
    const std::string less = fmt::format("--reserve {}", kSmallReserve);
    if (fuller.reserve < asked.reserve && !add(less, size_, plan_.device, fuller, plan_.gpus) &&
        least_gpus(plan_.device, fuller) < least_gpus(plan_.device, asked))
      more_gpus(less + " ", plan_.device, fuller);
    for (const Device* device : others) more_gpus(fmt::format("--gpu {} ", device->name), *device, asked);
    return std::move(changes_);
  }

 private:
  // The first of the usual formats that is smaller and fits.
  void smaller_format() {
    for (const std::string_view name : published_formats()) {
      const FormatSize size = flat_size(*plan_.request.total, *plan_.request.active, std::string(name));
      if (size.weight_bytes < size_.weight_bytes &&
          add(fmt::format("--format {}", name), size, plan_.device, plan_.request, plan_.gpus))
        return;
    }
  }

  // Of the same kind, the largest memory first.
  std::vector<const Device*> other_devices() const {
    std::vector<const Device*> others;
    for (const Device& device : devices()) {
      if (device.kind == plan_.device.kind && device.name != plan_.device.name) others.push_back(&device);
    }
    std::ranges::stable_sort(others, std::greater{}, &Device::memory_bytes);
    return others;
  }

  bool add(std::string what, const FormatSize& size, const Device& device, const PlanRequest& request, uint64_t gpus) {
    FormatRow row;
    row.size = size;
    rate(device, request, gpus, &row);
    if (changes_.size() >= kProposals || !row.fits) return false;
    const double room = usable_bytes(device, request.reserve) * static_cast<double>(gpus);
    changes_.push_back({std::move(what), fmt::format("{} of weights, room for {}", human_bytes(size.weight_bytes),
                                                     human_bytes(static_cast<uint64_t>(room)))});
    return true;
  }

  uint64_t least_gpus(const Device& device, const PlanRequest& request) const {
    FormatRow row;
    row.size = size_;
    rate(device, request, plan_.gpus, &row);
    return row.min_gpus;
  }

  void more_gpus(const std::string& options, const Device& device, const PlanRequest& request) {
    const uint64_t gpus = least_gpus(device, request);
    if (gpus > plan_.gpus && gpus <= kMostGpus && device.has_wires())
      add(fmt::format("{}--gpus {}", options, gpus), size_, device, request, gpus);
  }

  const Plan& plan_;
  const FormatSize& size_;
  std::vector<Change> changes_;
};

}  // namespace

std::vector<Change> propose_flat_changes(const Plan& plan) { return FlatProposer(plan).run(); }

}  // namespace nibble
