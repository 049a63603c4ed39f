// Rows of an encoded matrix into the tiles of weight_layout.h, once when weights are loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "nibble/kernels/weight_layout.h"
#include "nibble/numerics/encoded.h"

namespace nibble {

// Writes the row groups that rows [row_begin, row_begin + rows.rows) of the matrix are: `row_begin` is a multiple of 16
// and so is rows.rows, unless they are the last. `matrix` holds layout.bytes() and is aligned to 64. Thread-safe for
// ranges apart. rows.format is the layout's. Aborts on column_group (act-order); Error on a scale that is not finite.
void pack_rows(const WeightLayout& layout, const EncodedView& rows, uint64_t row_begin, std::byte* matrix);

// The matrix's `multiplier`: the second-level scale, or its reciprocal rounded to float32 where files divide by it.
float multiplier_of(const Format& format, const TensorScale& scale);

}  // namespace nibble
