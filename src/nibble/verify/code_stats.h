// Counting loops over stored bytes: what scan_weights (weight_stats.h) spends its time in. Pure functions of memory, no
// files, no threads. What numerics' kernels do not do is written so that the compiler vectorises it for plain x86-64.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nibble/numerics/format.h"
#include "nibble/numerics/simd/kernels.h"

namespace nibble {

// counts[b] += how often byte b occurs.
using ByteCounts = std::array<uint64_t, 256>;
void count_bytes(std::span<const std::byte> bytes, ByteCounts* counts);

// How codes stand for numbers, found from the values that decode() gives them: signs in the top bit, an offset in the
// middle of the range, two's complement, or plain numbers from zero up.
enum class CodeShape : uint8_t { kSignMagnitude, kOffset, kTwosComplement, kPlain };
CodeShape code_shape(const Format& format);

// Value of every code under scale 1, with zero points in the middle of the range and minima of zero: 16 entries for
// 4-bit elements, 256 for 8-bit ones. NaN codes are NaN.
std::vector<float> code_values(const Format& format);

// What counts as the size of a code: the code without its sign bit, or the distance from zero. Below 16 for 4-bit
// elements, at most 128 otherwise.
uint8_t code_magnitude(CodeShape shape, uint64_t bits, uint8_t code);

// Largest magnitude code of each block of one row of `cols` canonical codes; a block has format.block_cols of them (0:
// all), the last one may be shorter. Writes ceil(cols / block_cols) maxima. Blocks must cover whole bytes.
class BlockMaxima {
 public:
  BlockMaxima(const Format& format, uint64_t cols);
  uint64_t blocks() const { return blocks_; }
  // May be used by one thread at a time.
  void row(const std::byte* codes, uint8_t* maxima);

 private:
  void reduce(const uint8_t* magnitudes, uint8_t* maxima);

  CodeShape shape_;
  uint64_t bits_;
  uint64_t bytes_ = 0, block_bytes_ = 0, blocks_ = 0;
  bool odd_ = false;  // the last byte holds one code only
  const simd::Kernels& kernels_ = simd::kernels();
  std::array<uint8_t, 16> of_nibble_{};
  std::vector<uint8_t> magnitudes_, scratch_;
};

// Sum of the codes as unsigned numbers.
uint64_t code_sum(std::span<const std::byte> codes, uint64_t bits);

// Sums over dense elements (F64, F32, BF16, F16, and 8-bit floats without scales).
struct DenseSums {
  uint64_t elements = 0, zeros = 0, nans = 0, infinities = 0;
  std::optional<uint64_t> first_bad;  // element index of the first NaN or infinity
  double amax = 0;                    // over finite elements
  double sum_squares = 0;             // over finite elements, in a fixed order
};
DenseSums dense_sums(std::span<const std::byte> bytes, Element element);

}  // namespace nibble
