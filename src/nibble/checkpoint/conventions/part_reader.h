// Bytes of stored parts into canonical arrays (numerics/encoded.h). Shapes were checked when the weight was claimed:
// what does not fit here is a broken invariant of ours, except values inside the tensors, which are the file's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nibble/checkpoint/convention.h"

namespace nibble {

// Rows [first, first + rows) of a stored tensor whose rows are `row_bytes` long, `out` rows `out_stride` bytes apart
// (the shorter of both lengths is copied).
void read_part_rows(const Checkpoint& checkpoint, const StoredTensor& tensor, uint64_t row_bytes, uint64_t first,
                    uint64_t rows, std::byte* out, uint64_t out_stride);

// Codes and scales that are stored exactly as the canonical arrays are, one after the other for each slice. Fills
// `scales` from the part kScales if the format has scales; a single scale for all slices is shared. Zeros and
// second-level scales are the caller's.
EncodedMatrix read_canonical(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                             uint64_t rows);
// Only the scales, into `out`, whose rows, cols and row_phase are set.
void read_canonical_scales(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                           EncodedMatrix* out);

// Element `slice` of a float32 tensor (or its only element).
float read_float(const Checkpoint& checkpoint, const StoredTensor& tensor, uint64_t slice);
// All of an integer tensor (I8 U8 I16 I32 U32 I64 U64), as int64.
std::vector<int64_t> read_integers(const Checkpoint& checkpoint, const StoredTensor& tensor);
// The scale column of every weight column, checked to be below `groups`. Empty if every column's is k / group_size, or
// 0 where whole rows share (group_size 0): decode needs none then; or if all are -1, the field's spelling of "not
// used".
std::vector<uint32_t> read_group_index(const Checkpoint& checkpoint, const StoredTensor& tensor, uint64_t groups,
                                       uint64_t group_size);

}  // namespace nibble
