// Statistics of rows of an encoded matrix in canonical form: codes, blocks, scales, zero points.
#pragma once

#include <cstdint>

#include "nibble/numerics/encoded.h"
#include "nibble/verify/weight_stats.h"

namespace nibble {

// `rows` are rows [row_begin, …) of slice `slice` of a weight with `slice_rows` rows a slice, cut on whole block rows.
// Fills the quantized half of `stats` (which must be empty) except `second` and `input_scales`.
struct RowPlace {
  uint64_t slice = 0, row_begin = 0, slice_rows = 0;
};
void add_rows(const EncodedMatrix& rows, const RowPlace& place, WeightStats* stats);

}  // namespace nibble
