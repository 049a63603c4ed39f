// Eight four-bit codes in a 32-bit word, ordered so that a GPU makes BF16 pairs of them in few integer operations.
//
// Hopper starts 64 integer operations a cycle on a multiprocessor and reads about 33 weights in that cycle from memory:
// at most two a weight, and a plain order of E2M1 codes needs nearly that. Pair i is codes 2i (low half) and 2i + 1
// (high half) of a bfloat16x2 register.
//
// INT4 (offset binary): nibble i of each half is pair i's. A shift, and one three-input operation that keeps the nibble
// and sets 0x4300: bfloat16's 128 + code, exactly. Seven operations for eight codes; the kernel subtracts 136.
//
// E2M1 (s e e m): BF16 with these bits at 15, 8, 7, 6 is the value times 2^-126, subnormals included, so decoding is
// moving bits. A field {p, p + 1, p + 2; p + 9} of a half is (m, e, e; s) of a pair that one shift and one mask decode.
// No four such fields tile 16 bits, not even cyclically; three do and leave {7, 8, 14, 15}, which is s e e in place
// with m at 14:
//
//   bit   15  14  13  12  11  10   9   8   7   6   5   4   3   2   1   0
//         s0  m0  s2  e3  e3  m3  s1  e0  e0  e2  e2  m2  s3* e1  e1  m1      (digit: the pair)
//
// so pair 0 takes a mask, a shift and a merge, 1 to 3 a shift and a mask each: nine operations for eight codes. Pair 3
// is rotated by 4, by which its sign comes from the other half (*: the low half's bit 3 is the sign of the odd code).
// FP8 kernels decode the same words: see e2m1_word_to_codes for the general way.
#pragma once

#include <cstdint>

#include "nibble/numerics/host_device.h"

namespace nibble {

// What four BF16 pairs of E2M1 codes have to be multiplied with: 2^126 times their scale.
inline constexpr int kE2m1PairExponent = -126;

NIBBLE_HD constexpr uint32_t rotate_right(uint32_t word, uint32_t by) { return (word >> by) | (word << (32 - by)); }

NIBBLE_HD constexpr void e2m1_word_to_pairs(uint32_t word, uint32_t pairs[4]) {
  constexpr uint32_t kField = 0x81C081C0u;
  pairs[0] = (word & 0x81808180u) | ((word >> 8) & 0x00400040u);
  pairs[1] = (word << 6) & kField;
  pairs[2] = (word << 2) & kField;
  pairs[3] = rotate_right(word, 4) & kField;
}

// 128 + code as BF16, for offset-binary codes.
NIBBLE_HD constexpr void int4_word_to_pairs(uint32_t word, uint32_t pairs[4]) {
  constexpr uint32_t kNibble = 0x000F000Fu, kMagic = 0x43004300u;
  pairs[0] = (word & kNibble) | kMagic;
  pairs[1] = ((word >> 4) & kNibble) | kMagic;
  pairs[2] = ((word >> 8) & kNibble) | kMagic;
  pairs[3] = ((word >> 12) & kNibble) | kMagic;
}

// The inverse maps, for the host: eight codes to a word and back.
constexpr uint32_t int4_codes_to_word(const uint8_t codes[8]) {
  uint32_t word = 0;
  for (uint64_t i = 0; i < 4; ++i) {
    word |= static_cast<uint32_t>(codes[2 * i] & 15u) << (4 * i);
    word |= static_cast<uint32_t>(codes[2 * i + 1] & 15u) << (4 * i + 16);
  }
  return word;
}

constexpr void int4_word_to_codes(uint32_t word, uint8_t codes[8]) {
  for (uint64_t i = 0; i < 4; ++i) {
    codes[2 * i] = static_cast<uint8_t>((word >> (4 * i)) & 15u);
    codes[2 * i + 1] = static_cast<uint8_t>((word >> (4 * i + 16)) & 15u);
  }
}

constexpr uint32_t e2m1_codes_to_word(const uint8_t codes[8]) {
  uint32_t word = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t half = (i % 2) * 16, pair = i / 2;
    const uint32_t sign = (codes[i] >> 3) & 1u, high = (codes[i] >> 1) & 3u, low = codes[i] & 1u;
    switch (pair) {
      case 0: word |= (sign << 15 | high << 7 | low << 14) << half; break;
      case 1: word |= (sign << 9 | high << 1 | low) << half; break;
      case 2: word |= (sign << 13 | high << 5 | low << 4) << half; break;
      default: word |= (high << 11 | low << 10) << half | sign << (16 - half + 3); break;
    }
  }
  return word;
}

constexpr void e2m1_word_to_codes(uint32_t word, uint8_t codes[8]) {
  uint32_t pairs[4] = {};
  e2m1_word_to_pairs(word, pairs);
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t bits = pairs[i / 2] >> ((i % 2) * 16);
    codes[i] = static_cast<uint8_t>(((bits >> 12) & 8u) | ((bits >> 6) & 7u));
  }
}

}  // namespace nibble
