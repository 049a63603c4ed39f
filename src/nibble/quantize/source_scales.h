// Scales of a quantized source that no reader can use: no output may carry them on, whether it moves, re-expresses or
// decodes the weights. FORMATS.md §11.8: NaN and infinity anywhere; where elements are floating-point numbers also a
// negative scale, a float scale of zero and a second level of zero. Block scales of a byte may be zero, and those of
// integers have either sign where the rule makes the extreme of a block the one code without an opposite.
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
std::optional<BadScale> find_bad_scale(const EncodedMatrix& matrix);

// Error if a slice of `weight` has one; names its tensor.
void refuse_bad_scale(const Checkpoint& source, const Weight& weight, uint64_t slice, const EncodedMatrix& matrix);

}  // namespace nibble
