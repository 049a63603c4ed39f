// The scale that a block's codes are multiplied by once the second level is in it: s, s * second or s / second, rounded
// to float32. The same number divides when encoding.
#pragma once

#include <cstdint>

#include "nibble/numerics/encoded.h"
#include "nibble/numerics/host_device.h"

namespace nibble {

NIBBLE_HD constexpr float effective_scale(float scale, SecondLevel level, float second) {
  return level == SecondLevel::kMultiply ? scale * second : level == SecondLevel::kDivide ? scale / second : scale;
}

// For many blocks; `out` may be `scales`.
inline void effective_scales(const float* scales, uint64_t count, const TensorScale& tensor, float* out) {
  switch (tensor.level) {
    case SecondLevel::kNone:
      for (uint64_t b = 0; b < count; ++b) out[b] = scales[b];
      break;
    case SecondLevel::kMultiply:
      for (uint64_t b = 0; b < count; ++b) out[b] = effective_scale(scales[b], SecondLevel::kMultiply, tensor.value);
      break;
    case SecondLevel::kDivide:
      for (uint64_t b = 0; b < count; ++b) out[b] = effective_scale(scales[b], SecondLevel::kDivide, tensor.value);
      break;
  }
}

}  // namespace nibble
