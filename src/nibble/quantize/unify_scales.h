// One second-level scale for matrices that carry several (--unify-scales): block scales are multiplied by the ratio and
// rounded once to their stored type, codes stay. The largest second level wins, so that no block scale can overflow.
#pragma once

#include <vector>

#include "nibble/numerics/encoded.h"
#include "nibble/quantize/scale_changes.h"

namespace nibble {

// Gives `matrix` the second-level scale `shared` and block scales to match.
ScaleChanges rescale(EncodedMatrix& matrix, const TensorScale& shared);

// One report per matrix. Matrices of a format with a second level and E4M3 block scales.
std::vector<ScaleChanges> unify_second_level(std::vector<EncodedMatrix>& matrices);

}  // namespace nibble
