// Canonical arrays to float32. One place for every format. A block's effective scale is made first, as the producers'
// own decoders do, and then one product per element:
//   e = s, s * second (kMultiply) or s / second (kDivide)
//   value = q * e;   (code - zero) * e with ZeroPoint::kCode;   code * e + min with kMin
// each operation rounded to float32. With one level, 4-bit elements and scales of at most 16 bits the product is exact.
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

// Value of one stored scale, and of many.
float scale_value(ScaleType type, const std::byte* stored);
void scale_values(ScaleType type, const std::byte* stored, uint64_t count, float* out);

}  // namespace nibble
