#include "nibble/plan/format_row.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"
#include "nibble/numerics/format.h"

namespace nibble {
namespace {

// A matrix large enough that its second level does not show.
constexpr uint64_t kSide = uint64_t{1} << 20;

uint64_t rounded(double bytes) { return static_cast<uint64_t>(std::llround(bytes)); }

}  // namespace

FormatSize flat_size(double total, double active, const std::string& format_name) {
  const Format format = parse_format(format_name);
  const double bits = format.bits_per_weight(kSide, kSide);
  FormatSize size;
  size.weight_bytes = rounded(total * bits / 8);
  size.active_bytes = rounded(active * bits / 8);
  if (format.is_dense()) return size;
  size.value_bytes = rounded(total * static_cast<double>(format.code_bits()) / 8);
  size.scale_bytes = size.weight_bytes - size.value_bytes;
  return size;
}

double usable_bytes(const Device& device, double reserve) {
  return static_cast<double>(device.memory_bytes) * (1 - reserve);
}

uint64_t usual_gpus(double bytes, double usable, uint64_t gpus_per_machine) {
  const auto needed = static_cast<uint64_t>(std::ceil(bytes / usable));
  for (uint64_t gpus = 1; gpus < gpus_per_machine; gpus *= 2) {
    if (gpus >= needed) return gpus;
  }
  return std::max<uint64_t>(1, ceil_div(needed, gpus_per_machine)) * gpus_per_machine;
}

uint64_t next_gpus(uint64_t gpus, uint64_t gpus_per_machine) {
  if (gpus < gpus_per_machine) return std::min(std::bit_floor(gpus) * 2, gpus_per_machine);
  return std::bit_floor(gpus / gpus_per_machine) * 2 * gpus_per_machine;
}

uint64_t most_gpus(uint64_t gpus_per_machine) { return std::min<uint64_t>(64 * gpus_per_machine, 4096); }

void rate(const Device& device, const PlanRequest& request, uint64_t gpus, FormatRow* row) {
  const auto bytes = static_cast<double>(row->size.weight_bytes);
  const double usable = usable_bytes(device, request.reserve);
  row->min_gpus = std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(bytes / usable)));
  row->machines = ceil_div(row->min_gpus, request.gpus_per_machine);
  row->floor_seconds =
      static_cast<double>(row->size.active_bytes) / (static_cast<double>(gpus) * device.memory_bandwidth);
  row->fits = row->min_gpus <= gpus;
}

}  // namespace nibble
