// Relative RMSE of round-to-nearest on normally distributed weights, as format_error_test.cc measures it.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "nibble/numerics/format.h"

namespace nibble {

// Measured at one group size.
struct ErrorAtGroup {
  uint64_t group;
  double rel_rmse;
};

// Interpolated in log2(group); constant beyond both ends. `points` ascends in group.
double error_at_group(uint64_t group, std::initializer_list<ErrorAtGroup> points);

inline double no_error(const Format&) { return 0; }

}  // namespace nibble
