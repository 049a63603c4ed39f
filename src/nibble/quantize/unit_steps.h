// In which pieces a unit is made.
#pragma once

#include <cstdint>
#include <vector>

#include "nibble/quantize/output_plan.h"

namespace nibble {

// One slice of one output; `index` is its place in unit.outs.
struct SliceTask {
  uint32_t out = 0;
  size_t index = 0;
  uint64_t slice = 0;
};
// Slices that share a second-level scale.
using Step = std::vector<SliceTask>;

// In the order of the source's slices, so that sources are read front to back.
std::vector<Step> steps_of(const OutputPlan& plan, const Unit& unit);

// Of all its outputs, ascending.
std::vector<uint32_t> source_weights(const OutputPlan& plan, const Unit& unit);

}  // namespace nibble
