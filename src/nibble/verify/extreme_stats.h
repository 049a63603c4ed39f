// Scales that are numbers, and with their codes no weights: values beyond what 16 bits hold, and blocks many octaves
// away from all others of their matrix.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "nibble/numerics/encoded.h"

namespace nibble {

struct ScaleStats;

// Counts of numbers by size, kOctaves to a step, from the least float32 to the largest.
class OctaveCounts {
 public:
  static constexpr int kOctaves = 8;
  static constexpr size_t kSteps = 36;

  void add(double value, uint64_t times = 1);               // zeros and what is no number are left out
  void add_range(double low, double high, uint64_t times);  // somewhere between them, and nowhere a gap
  void merge(const OctaveCounts& other);

  // The few at one end that an empty stretch of kGap steps or more keeps apart from the others.
  struct Apart {
    uint64_t count = 0, others = 0;
    int octaves = 0;  // at least, between them
  };
  Apart above() const { return apart(true); }
  Apart below() const { return apart(false); }

 private:
  // Beside a number 2^24 times as large nothing is left of the others in a sum of float32.
  static constexpr size_t kGap = 24 / kOctaves;
  Apart apart(bool above) const;

  void add_step(size_t step, uint64_t times);

  std::array<uint32_t, kSteps> counts_{};
};

struct ExtremeStats {
  uint64_t overflows = 0;                  // elements that BF16 holds as infinity, or that are none
  std::optional<uint64_t> first_overflow;  // element of the weight
  OctaveCounts blocks;                     // that are not zero, by the size of their scale with its second level
  void merge(const ExtremeStats& other);
};

// `first`: place of the rows' first element in the weight.
void add_overflows(const EncodedMatrix& rows, uint64_t first, ExtremeStats* stats);

// `scales`: the statistics of all scales of `rows`. False, and nothing is done, if they lie far apart: then each block
// has to be looked at (add_live_blocks), since blocks of zeros have scales that mean nothing.
bool add_blocks(const EncodedMatrix& rows, const ScaleStats& scales, ExtremeStats* stats);

// One row of blocks with the largest magnitude code of each.
void add_live_blocks(const EncodedMatrix& rows, uint64_t scale_row, std::span<const uint8_t> maxima,
                     ExtremeStats* stats);

}  // namespace nibble
