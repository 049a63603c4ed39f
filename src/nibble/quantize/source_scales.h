// Scales and codes of a quantized source that no reader can use: no output may carry them on, whether it copies, moves,
// re-expresses or decodes the weights. FORMATS.md §11.8: NaN and infinity anywhere, a negative scale, a float scale of
// zero and a second level of zero. Meant are
//   - block scales of a byte that are zero;
//   - negative scales where a rule of the format makes the extreme of a block the one code without an opposite, the
//     lowest: every block under a negative scale reaches it (ggml's searches for the same type may end beside it, so
//     GGUF's are believed);
//   - in GGUF float scales of zero, which its quantizers write for blocks of equal values.
#pragma once

#include <cstdint>
#include <optional>

#include "nibble/checkpoint/checkpoint.h"
#include "nibble/checkpoint/weight_table.h"
#include "nibble/numerics/encoded.h"

namespace nibble {

struct BadScale {
  uint64_t row = 0, column = 0;  // of the scales, counted from the matrix' first row
  bool second_level = false;     // then the place means nothing
  float value = 0;
};

// The first one by row.
std::optional<BadScale> find_bad_scale(const EncodedMatrix& matrix, Container container);

struct BadCode {
  uint64_t row = 0, column = 0;
  float value = 0;
};

// The first code that stands for no number, by row. Only floating-point elements of a byte have such codes.
std::optional<BadCode> find_bad_code(const EncodedMatrix& matrix);

// Error if a slice of `weight` has one or the other; names its tensor.
void refuse_unusable(const Checkpoint& source, const Weight& weight, uint64_t slice, const EncodedMatrix& matrix);

// Blocks of symmetric integers under a float scale of zero, which their container means and no other does: the scale
// becomes 1 and the codes zero, as in a block of zeros that is quantized here. Their values stay.
void replace_zero_scales(EncodedMatrix* matrix);

}  // namespace nibble
