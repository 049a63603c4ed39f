// Codes of four bits seen from their block's zero point: where zero points lie, and how codes are spread beside them.
// Read the right way, a block of both signs has its zero point inside the range and its codes crowd around it. Flipping
// the top bit (two's complement taken for offset binary) of the codes drives them to both ends of the range, of the
// zero points drives these to the ends, of both drives both there.
#pragma once

#include <array>
#include <cstdint>

#include "nibble/numerics/encoded.h"

namespace nibble {

// Does a histogram fall step by step from its end, as a bell cut in two does? Weights of a few values have their peaks
// elsewhere, or fall at once: to less than `gradual` of the step before. Weights spread evenly, whose ends a search for
// scales fills by cutting them off, do not fall far. Shares of the last code, of the two before it, and of those four
// and five steps before it.
struct EndShares {
  double last = 0, second = 0, third = 0, far = 0;
};
bool falls_gradually(const EndShares& shares, double gradual);

struct ZeroClasses {
  uint64_t inside = 0;         // blocks whose zero point is 4..11
  uint64_t low = 0, high = 0;  // 0..3, 12..15
  uint64_t near_end = 0;       // of low and high: not 0 or 15, so the block has both signs
  std::array<uint64_t, 16> inside_codes{};
  std::array<uint64_t, 16> end_codes{};  // of low and high, those of high mirrored (15 - code)

  uint64_t blocks() const { return inside + low + high; }
  void merge(const ZeroClasses& other);
};

// Whole blocks of single rows with a zero point of their own, elements of four bits; others are left out.
void add_zero_classes(const EncodedMatrix& matrix, ZeroClasses* classes);

enum class ZeroReading : uint8_t { kRight, kCodesFlipped, kZerosFlipped, kBothFlipped, kUndecided };

// Weights of one sign, or spread evenly, are kUndecided: every reading of them could be meant.
ZeroReading zero_reading(const ZeroClasses& classes);

}  // namespace nibble
