// The least time that work can take on a machine: what is read over the read bandwidth, what is multiplied over the
// peak of its arithmetic, whichever is longer. Steps of a pass follow one another, so theirs add up.
#pragma once

#include <span>
#include <string_view>

#include "nibble/engine/work.h"
#include "nibble/hardware/device.h"

namespace nibble {

struct Floor {
  double seconds = 0;
  std::string_view ceiling = "memory";  // or "int8", "f32": what binds, for most of the time
};

// A peak of 0 was not measured: what needs it is taken to cost nothing.
Floor floor_of(const OpWork& step, const Device& machine);
Floor floor_of(std::span<const OpWork> steps, const Device& machine);

}  // namespace nibble
