// Stored scales. A scale that a rule has chosen is rounded to nearest even in its stored type (upwards for E8M0, which
// has only powers of two), and stays usable: never zero, never infinite, however small or large the weights are.
#pragma once

#include <cstdint>

#include "nibble/numerics/codec/bf16.h"
#include "nibble/numerics/codec/e4m3.h"
#include "nibble/numerics/codec/e8m0.h"
#include "nibble/numerics/codec/f16.h"
#include "nibble/numerics/format.h"

namespace nibble {

// Keeps the magnitude of a stored pattern in [1, largest]; `sign` is its sign bit.
NIBBLE_HD constexpr uint32_t usable_scale(uint32_t stored, uint32_t sign, uint32_t largest) {
  const uint32_t magnitude = stored & ~sign;
  const uint32_t at_least = magnitude > 1u ? magnitude : 1u;
  return (stored & sign) | (at_least < largest ? at_least : largest);
}

// Bits of the stored type. `x` is not NaN; only the float types keep its sign.
template <ScaleType kType>
NIBBLE_HD constexpr uint32_t scale_encode(float x) {
  if constexpr (kType == ScaleType::kF32) return usable_scale(float_bits(x), kFloatSign, kFloatInf - 1);
  if constexpr (kType == ScaleType::kBF16) {
    return usable_scale(round_bits_to_even(float_bits(x), 16), 0x8000u, 0x7f7fu);
  }
  if constexpr (kType == ScaleType::kF16) return usable_scale(f16_encode(x), 0x8000u, 0x7bffu);
  if constexpr (kType == ScaleType::kE8M0) return e8m0_round_up(x);
  if constexpr (kType == ScaleType::kE4M3) {
    const uint32_t magnitude = e4m3_magnitude(x);
    return magnitude > 1u ? magnitude : 1u;
  }
  return 0;
}

template <ScaleType kType>
NIBBLE_HD constexpr float scale_decode(uint32_t stored) {
  if constexpr (kType == ScaleType::kF32) return bits_float(stored);
  if constexpr (kType == ScaleType::kBF16) return bf16_decode(static_cast<uint16_t>(stored));
  if constexpr (kType == ScaleType::kF16) return f16_decode(static_cast<uint16_t>(stored));
  if constexpr (kType == ScaleType::kE8M0) return e8m0_decode(static_cast<uint8_t>(stored));
  if constexpr (kType == ScaleType::kE4M3) return e4m3_decode(static_cast<uint8_t>(stored));
  return 1.0f;
}

NIBBLE_HD constexpr uint32_t scale_encode(ScaleType type, float x) {
  switch (type) {
    case ScaleType::kF32: return scale_encode<ScaleType::kF32>(x);
    case ScaleType::kBF16: return scale_encode<ScaleType::kBF16>(x);
    case ScaleType::kF16: return scale_encode<ScaleType::kF16>(x);
    case ScaleType::kE8M0: return scale_encode<ScaleType::kE8M0>(x);
    case ScaleType::kE4M3: return scale_encode<ScaleType::kE4M3>(x);
    case ScaleType::kNone: return 0;
  }
  return 0;
}

NIBBLE_HD constexpr float scale_decode(ScaleType type, uint32_t stored) {
  switch (type) {
    case ScaleType::kF32: return scale_decode<ScaleType::kF32>(stored);
    case ScaleType::kBF16: return scale_decode<ScaleType::kBF16>(stored);
    case ScaleType::kF16: return scale_decode<ScaleType::kF16>(stored);
    case ScaleType::kE8M0: return scale_decode<ScaleType::kE8M0>(stored);
    case ScaleType::kE4M3: return scale_decode<ScaleType::kE4M3>(stored);
    case ScaleType::kNone: return 1.0f;
  }
  return 1.0f;
}

}  // namespace nibble
