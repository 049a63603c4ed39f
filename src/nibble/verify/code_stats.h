// Counting loops over stored bytes: what scan_weights (weight_stats.h) spends its time in. Pure functions of memory, no
// files, no threads. All are written so that the compiler vectorises them for plain x86-64; each runs at more than
// 2 GB/s on one core (code_stats_bench in bench/).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nibble/numerics/format.h"

namespace nibble {

// counts[b] += how often byte b occurs.
using ByteCounts = std::array<uint64_t, 256>;
void count_bytes(std::span<const std::byte> bytes, ByteCounts* counts);

// What counts as the size of a code: sign bit cleared for floating-point elements, |q| for signed integers, the code
// itself for kUint4. Below 16 for 4-bit elements, at most 128 otherwise.
uint8_t code_magnitude(Element element, uint8_t code);

// Largest magnitude code of each block of one row: `codes` holds `cols` codes of `element` (4-bit ones two a byte, low
// nibble first), a block has `block_cols` of them (0: all), the last one may be shorter. Writes ceil(cols / block_cols)
// maxima. 4-bit blocks must cover whole bytes (an even block_cols, or one block).
class BlockMaxima {
 public:
  BlockMaxima(Element element, uint64_t cols, uint64_t block_cols);
  uint64_t blocks() const { return blocks_; }
  // May be used by one thread at a time.
  void row(const std::byte* codes, uint8_t* maxima);

 private:
  void reduce(const uint8_t* magnitudes, uint8_t* maxima);

  Element element_;
  uint64_t bytes_ = 0, block_bytes_ = 0, blocks_ = 0;
  bool odd_ = false;  // the last byte holds one code only
  std::vector<uint8_t> magnitudes_, scratch_;
};

// Sums over dense elements (F64, F32, BF16, F16, and 8-bit floats without scales).
struct DenseSums {
  uint64_t elements = 0, zeros = 0, nans = 0, infinities = 0;
  std::optional<uint64_t> first_bad;  // element index of the first NaN or infinity
  double amax = 0;                    // over finite elements
  double sum_squares = 0;             // over finite elements, in a fixed order
};
DenseSums dense_sums(std::span<const std::byte> bytes, Element element);

// Value of every code under scale 1 and without zero points: 16 entries for 4-bit elements, 256 for 8-bit ones.
// NaN codes are NaN.
std::vector<float> code_values(Element element);

}  // namespace nibble
