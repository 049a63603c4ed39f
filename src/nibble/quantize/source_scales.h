// Scales of a quantized source that no reader can use: what is moved or recast without being decoded must not carry
// them on.
#pragma once

#include <cstdint>
#include <optional>

#include "nibble/numerics/encoded.h"

namespace nibble {

struct BadScale {
  uint64_t row = 0, column = 0;  // of the scales, counted from the matrix' first row
  bool second_level = false;     // then the place means nothing
  float value = 0;               // NaN or infinite
};

// The first one by row.
std::optional<BadScale> find_bad_scale(const EncodedMatrix& matrix);

}  // namespace nibble
