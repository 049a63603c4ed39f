// Power-of-two scales of the MX formats (FORMATS.md §2.1): E8M0 code from a block's largest magnitude. Exponents come
// from the bit pattern, never from a float32 logarithm, which is one too high just below powers of two. A zero block
// gets code 0 from every rule, and so does everything whose exponent would be below -127.
#pragma once

#include <cstdint>

#include "nibble/numerics/codec/bits.h"
#include "nibble/numerics/codec/e2m1.h"
#include "nibble/numerics/codec/e4m3.h"
#include "nibble/numerics/codec/e8m0.h"

namespace nibble {

// What the rules need to know of an element type.
struct MxElement {
  int max_exponent;
  int mantissa_bits;
  float max;
};
inline constexpr MxElement kMxE2m1 = {kE2m1MaxExponent, kE2m1MantissaBits, kE2m1Max};
inline constexpr MxElement kMxE4m3 = {kE4m3MaxExponent, kE4m3MantissaBits, kE4m3Max};

// `biased` is an exponent with the bias of float32, at most 255.
NIBBLE_HD constexpr uint32_t mx_code(uint32_t biased, MxElement element) {
  const int code = static_cast<int>(biased) - element.max_exponent;
  return static_cast<uint32_t>(code > 0 ? code : 0);
}

// OCP MX: floor(log2 amax) - emax. Magnitudes above the element's largest saturate.
NIBBLE_HD constexpr uint32_t mx_floor(float amax, MxElement element) {
  return mx_code(magnitude_bits(amax) >> 23, element);
}

// amax first rounded up by half an ulp of the element's mantissa: saturates less often than floor.
NIBBLE_HD constexpr uint32_t mx_even(float amax, MxElement element) {
  const uint32_t half_ulp = 1u << (23 - element.mantissa_bits - 1);
  return mx_code((magnitude_bits(amax) + half_ulp) >> 23, element);
}

// ceil(log2(amax / max)), the quotient in float32: never saturates.
NIBBLE_HD constexpr uint32_t mx_rceil(float amax, MxElement element) {
  return e8m0_round_up(magnitude(amax) / element.max);
}

// ceil(log2 amax) - emax: never saturates, and wastes up to a bit.
NIBBLE_HD constexpr uint32_t mx_ceil(float amax, MxElement element) {
  return mx_code((magnitude_bits(amax) + 0x7fffffu) >> 23, element);
}

}  // namespace nibble
