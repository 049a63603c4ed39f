// Which formats a family of rules is for, told from the format's data.
#pragma once

#include "nibble/numerics/format.h"

namespace nibble {

inline bool is_mx(const Format& format) {
  return format.scale == ScaleType::kE8M0 && format.block_rows == 1 && format.block_cols == 32 &&
         (format.element == Element::kE2M1 || format.element == Element::kE4M3);
}

inline bool is_nvfp4(const Format& format) { return format.two_level && format.element == Element::kE2M1; }

inline bool has_float_scale(const Format& format) {
  return format.scale == ScaleType::kF32 || format.scale == ScaleType::kBF16 || format.scale == ScaleType::kF16;
}

inline bool is_symmetric_int4(const Format& format) {
  return format.element == Element::kInt4 && format.zero == ZeroPoint::kNone && has_float_scale(format);
}

inline bool is_asymmetric_int4(const Format& format) {
  return format.element == Element::kInt4 && format.zero == ZeroPoint::kCode && has_float_scale(format);
}

// One scale for the whole matrix: it has to be known before the first row.
inline bool has_tensor_scale_only(const Format& format) { return format.block_rows == 0 && format.block_cols == 0; }

}  // namespace nibble
