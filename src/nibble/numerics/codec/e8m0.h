// E8M0: a power of two, value 2^(code - 127), code 255 = NaN (FORMATS.md §1.4). No zero, no sign. Code 0 is 2^-127, a
// float32 subnormal: everything that touches it must run without flush-to-zero.
#pragma once

#include <cstdint>

#include "nibble/numerics/codec/bits.h"

namespace nibble {

inline constexpr uint8_t kE8m0Nan = 255;
inline constexpr uint8_t kE8m0MaxCode = 254;

NIBBLE_HD constexpr float e8m0_decode(uint8_t code) {
  const uint32_t power = choose(code == 0, 0x00400000u, static_cast<uint32_t>(code) << 23);
  return bits_float(choose(code == kE8m0Nan, 0x7fc00000u, power));
}

// Code of 2^k, k clamped to -127..127.
NIBBLE_HD constexpr uint8_t e8m0_of_exponent(int k) {
  return static_cast<uint8_t>((k < -127 ? -127 : k > 127 ? 127 : k) + 127);
}

// Code of the smallest power of two >= x, for x >= 0. 0 and everything up to 2^-127 give code 0; above 2^127 gives 254.
NIBBLE_HD constexpr uint8_t e8m0_round_up(float x) {
  const uint32_t a = magnitude_bits(x);
  const uint32_t code = choose(a <= 0x00400000u, 0u, (a + 0x7fffffu) >> 23);
  return static_cast<uint8_t>(code < kE8m0MaxCode ? code : kE8m0MaxCode);
}

}  // namespace nibble
