// Canonical arrays to float32. One place for every format:
//   value = q * s                                   (kNone)
//   value = (q * s) * second                        (kMultiply; q * s is exact for 4-bit elements)
//   value = q * (s / second)                        (kDivide)
//   value = (code - zero) * s   with ZeroPoint::kCode;   value = s * code + min   with kMin
// each operation rounded to float32 (E4M3 * E8M0, E2M1 * anything and integers * 16-bit scales are exact).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nibble/numerics/encoded.h"

namespace nibble {

// Writes rows * cols floats, rows `row_stride` floats apart.
void decode(const EncodedView& in, float* out, uint64_t row_stride);
void decode(const EncodedMatrix& in, std::span<float> out);

// Dense conversions, round to nearest even; NaN stays NaN. `out` has in.rows * in.cols elements of `element`,
// contiguous.
void convert(const DenseView& in, Element element, std::byte* out);

// Value of one stored scale.
float scale_value(ScaleType type, const std::byte* stored);

}  // namespace nibble
