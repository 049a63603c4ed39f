// Bytes of what stands in a tile before its codes, for loops that know the types.
#pragma once

#include "nibble/kernels/weight_layout.h"

namespace nibble {

template <ScaleType kType>
constexpr uint64_t tile_scale_bytes() {
  switch (kType) {
    case ScaleType::kNone: return 0;
    case ScaleType::kE8M0:
    case ScaleType::kE4M3: return kRowGroup;
    case ScaleType::kBF16:
    case ScaleType::kF16: return 2 * kRowGroup;
    case ScaleType::kF32: return 4 * kRowGroup;
  }
  return 0;
}

template <ZeroPoint kZero>
constexpr uint64_t tile_zero_bytes() {
  return kZero == ZeroPoint::kCode ? kRowGroup : kZero == ZeroPoint::kMin ? 4 * kRowGroup : 0;
}

}  // namespace nibble
