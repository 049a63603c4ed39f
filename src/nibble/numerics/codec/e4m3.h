// E4M3, the "fn" variant (FP8): bits s eeee mmm, bias 7, no infinity, NaN only 0x7F and 0xFF, largest 448 = 0x7E
// (FORMATS.md §1.2). The block scales of NVFP4 are the codes with bit 7 clear.
#pragma once

#include <cstdint>

#include "nibble/numerics/codec/bits.h"

namespace nibble {

inline constexpr float kE4m3Max = 448.0f;
inline constexpr float kE4m3MinSubnormal = 0x1p-9f;
inline constexpr int kE4m3MaxExponent = 8;
inline constexpr int kE4m3MantissaBits = 3;
inline constexpr uint8_t kE4m3MaxCode = 0x7e;
inline constexpr uint8_t kE4m3Nan = 0x7f;

// What becomes of a magnitude that rounds beyond the largest code.
enum class Overflow : uint8_t {
  kSaturate,
  kSpecial,  // NaN in E4M3, infinity in E5M2: casts of NumPy's kind
};

NIBBLE_HD constexpr float e4m3_decode(uint8_t code) {
  const uint32_t magnitude = code & 0x7fu, sign = static_cast<uint32_t>(code & 0x80u) << 24;
  const uint32_t subnormal = float_bits(static_cast<float>(magnitude) * kE4m3MinSubnormal);
  const uint32_t finite = choose(magnitude < 8, subnormal, (magnitude << 20) + (120u << 23));
  return bits_float(sign | choose(magnitude == kE4m3Nan, 0x7fc00000u, finite));
}

// Magnitude code 0..0x7F of |x|, round to nearest even; 464, the tie with the missing 480, goes to 448. NaN gives 0x7F.
NIBBLE_HD constexpr uint32_t e4m3_magnitude(float x, Overflow overflow = Overflow::kSaturate) {
  const uint32_t a = magnitude_bits(x);
  const uint32_t limited = a < float_bits(480.0f) ? a : float_bits(480.0f);
  const uint32_t subnormal = static_cast<uint32_t>(nearest_multiple(bits_float(limited), -9));
  const uint32_t normal = round_bits_to_even(limited, 20) - (120u << 3);
  const uint32_t largest = overflow == Overflow::kSaturate ? kE4m3MaxCode : kE4m3Nan;
  const uint32_t finite = choose(a < float_bits(0x1p-6f), subnormal, normal < largest ? normal : largest);
  return choose(a > kFloatInf, kE4m3Nan, finite);
}

NIBBLE_HD constexpr uint8_t e4m3_encode(float x, ZeroSign zero_sign = ZeroSign::kKeepSign,
                                        Overflow overflow = Overflow::kSaturate) {
  const uint32_t magnitude = e4m3_magnitude(x, overflow);
  return static_cast<uint8_t>((code_sign(x, magnitude == 0, zero_sign) << 7) | magnitude);
}

}  // namespace nibble
