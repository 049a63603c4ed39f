// Encoded rows as bytes of a declared part, for conventions that store an array as it is in memory.
#pragma once

#include <cstdint>

#include "nibble/checkpoint/convention.h"

namespace nibble {

// Codes, rows `stored_row_bytes` apart in the part (0: as in memory); what a longer stored row adds is zero.
PartRun code_run(const WriteRequest& request, uint32_t part, uint64_t slice, uint64_t row_begin,
                 const EncodedView& rows, uint64_t stored_row_bytes = 0);
// Scales in the stored type, (scale_rows, scale_cols) for each slice. Row cuts lie on block borders.
PartRun scale_run(const WriteRequest& request, uint32_t part, uint64_t slice, uint64_t row_begin,
                  const EncodedView& rows);
// One float32 for each slice: the second-level scale, which must be meant as `level` says.
PartRun second_run(uint32_t part, uint64_t slice, const EncodedView& rows, SecondLevel level);

// Slices, rows and columns of the request's shape, as in Weight.
struct RequestShape {
  uint64_t slices = 1, rows = 1, cols = 1;
};
RequestShape request_shape(const WriteRequest& request);
// The leading dimensions, then `tail`.
std::vector<uint64_t> stacked(const WriteRequest& request, std::initializer_list<uint64_t> tail);
// "M" of "M.weight"; the whole name if it does not end so.
std::string module_of(std::string_view weight_name);
// The container's type for scales: E8M0 as U8, which every reader of the field knows.
Dtype scale_dtype(ScaleType type);

}  // namespace nibble
