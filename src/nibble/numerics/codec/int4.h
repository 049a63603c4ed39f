// Integer elements: INT4 as offset binary (code = q + 8, FORMATS.md §1.6), unsigned nibbles (code = q) and INT8. The
// integer is the nearest to x, ties to even, inside [low, high]; NaN, which the caller has to refuse, gives `low`.
#pragma once

#include <cstdint>

#include "nibble/numerics/codec/bits.h"

namespace nibble {

inline constexpr int kInt4Offset = 8;

// `low` and `high` are integers of at most 2^22. Clamping first gives the same as clamping last, and keeps the sum in
// nearest_multiple exact.
NIBBLE_HD constexpr int32_t round_to_int(float x, float low, float high) {
  const float limited = x > low ? (x < high ? x : high) : low;
  return nearest_multiple(limited, 0);
}

NIBBLE_HD constexpr uint8_t int4_encode(float x, int low = -8, int high = 7) {
  return static_cast<uint8_t>(round_to_int(x, static_cast<float>(low), static_cast<float>(high)) + kInt4Offset);
}

NIBBLE_HD constexpr int int4_decode(uint8_t code) { return static_cast<int>(code & 15u) - kInt4Offset; }

// ModelOpt's INT4-AWQ stores two's complement; exclusive-or with 8 converts both ways.
NIBBLE_HD constexpr uint8_t int4_twos_complement(uint8_t code) { return code ^ 8u; }

// Canonical nibble order (format.h): column 2j low, 2j + 1 high.
NIBBLE_HD constexpr uint8_t pack_nibbles(uint8_t even, uint8_t odd) {
  return static_cast<uint8_t>(even | static_cast<uint32_t>(odd) << 4);
}
NIBBLE_HD constexpr uint8_t unpack_nibble(uint8_t byte, bool odd) {
  return static_cast<uint8_t>(odd ? byte >> 4 : byte & 15u);
}

}  // namespace nibble
