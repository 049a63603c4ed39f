// E2M1 (FP4): bits s e e m, bias 1, no infinity, no NaN, signed zero (FORMATS.md §1.1).
//   code   0  1   2  3    4  5  6  7      8..15: the negatives, 8 = -0
//   value  0  0.5 1  1.5  2  3  4  6
#pragma once

#include <cstdint>

#include "nibble/numerics/codec/bits.h"

namespace nibble {

inline constexpr float kE2m1Max = 6.0f;
inline constexpr int kE2m1MaxExponent = 2;
inline constexpr int kE2m1MantissaBits = 1;

NIBBLE_HD constexpr float e2m1_decode(uint8_t code) {
  const uint32_t exponent = (code >> 1) & 3u, mantissa = code & 1u;
  const uint32_t magnitude = exponent != 0   ? ((exponent + 126u) << 23) | (mantissa << 22)
                             : mantissa != 0 ? float_bits(0.5f)
                                             : 0u;
  return bits_float(magnitude | (static_cast<uint32_t>(code & 8u) << 28));
}

// Magnitude code 0..7 of |x|, round to nearest even, above 6 saturates. NaN, which the caller has to refuse, gives 7.
NIBBLE_HD constexpr uint32_t e2m1_magnitude(float x) {
  const uint32_t a = magnitude_bits(x);
  if (a >= float_bits(1.0f)) {
    const uint32_t limited = a < float_bits(6.0f) ? a : float_bits(6.0f);
    return round_bits_to_even(limited, 22) - (126u << 1);
  }
  return (a > float_bits(0.25f) ? 1u : 0u) + (a >= float_bits(0.75f) ? 1u : 0u);
}

NIBBLE_HD constexpr uint8_t e2m1_encode(float x, ZeroSign zero_sign = ZeroSign::kCanonical) {
  const uint32_t magnitude = e2m1_magnitude(x);
  return static_cast<uint8_t>((code_sign(x, magnitude == 0, zero_sign) << 3) | magnitude);
}

// Ties toward zero: ModelOpt's MXFP4 encoder and ggml's search for the first nearest value.
NIBBLE_HD constexpr uint8_t e2m1_encode_ties_down(float x, ZeroSign zero_sign) {
  const float a = bits_float(magnitude_bits(x));
  const uint32_t magnitude = (a > 0.25f ? 1u : 0u) + (a > 0.75f ? 1u : 0u) + (a > 1.25f ? 1u : 0u) +
                             (a > 1.75f ? 1u : 0u) + (a > 2.5f ? 1u : 0u) + (a > 3.5f ? 1u : 0u) + (a > 5.0f ? 1u : 0u);
  return static_cast<uint8_t>((code_sign(x, magnitude == 0, zero_sign) << 3) | magnitude);
}

}  // namespace nibble
