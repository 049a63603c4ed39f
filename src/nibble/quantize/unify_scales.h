// One second-level scale for matrices that carry several (--unify-scales): block scales are multiplied by the ratio and
// rounded once to their stored type, codes stay. The largest second level wins, so that no block scale can overflow.
#pragma once

#include <cstdint>
#include <vector>

#include "nibble/numerics/encoded.h"

namespace nibble {

struct UnifyReport {
  uint64_t changed = 0;                // block scales whose stored bytes changed
  double largest_relative_change = 0;  // of a block's effective scale, |new / old - 1|
};

// One report per matrix. Matrices of a format with a second level and E4M3 block scales.
std::vector<UnifyReport> unify_second_level(std::vector<EncodedMatrix>& matrices);

}  // namespace nibble
