// One line of the comparison: what a format makes of the weights.
#pragma once

#include <cstdint>
#include <string>

#include "nibble/hardware/device.h"
#include "nibble/plan/request.h"

namespace nibble {

// A model in a format, as far as bytes go.
struct FormatSize {
  uint64_t weight_bytes = 0;
  uint64_t active_bytes = 0;  // read for one decoded token, whatever the number of GPUs
  uint64_t value_bytes = 0;   // of weight_bytes, the codes of the quantized weights
  uint64_t scale_bytes = 0;   // their scales, zero points and second levels
};

struct FormatRow {
  std::string format;  // name
  std::string title;   // of the table
  FormatSize size;
  // Fewest GPUs whose memory, less the reserve, holds the weights; machines of gpus_per_machine.
  uint64_t min_gpus = 0, machines = 0;
  // Reading the active bytes once, spread evenly over the GPUs planned for.
  double floor_seconds = 0;
  bool fits = false;    // on the GPUs planned for
  std::string refused;  // why this format is not possible at all; everything else is 0
  double scales_percent() const {
    return size.value_bytes == 0
               ? 0
               : 100.0 * static_cast<double>(size.scale_bytes) / static_cast<double>(size.value_bytes);
  }
};

// `total` and `active` parameters, all of them in the format.
FormatSize flat_size(double total, double active, const std::string& format_name);

// Fills min_gpus, machines, floor_seconds and fits from the size.
void rate(const Device& device, const PlanRequest& request, uint64_t gpus, FormatRow* row);

// Bytes of a GPU that weights may take.
double usable_bytes(const Device& device, double reserve);
// The fewest of 1, 2, 4 … up to a machine, then whole machines, that hold so many bytes of weights.
uint64_t usual_gpus(double bytes, double usable, uint64_t gpus_per_machine);

// The next larger one of these numbers: the power of two, up to a machine, or twice the machines.
uint64_t next_gpus(uint64_t gpus, uint64_t gpus_per_machine);

// The most that are tried where a number of GPUs is searched for: 64 machines, and no more than 4,096.
uint64_t most_gpus(uint64_t gpus_per_machine);

}  // namespace nibble
