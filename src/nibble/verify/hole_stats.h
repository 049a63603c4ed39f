// Traces of codes that nobody wrote: files whose bytes were not all copied, tensors that were allocated and not filled.
// Both hold zero bytes, and scales are stored elsewhere and go on as if nothing had happened.
//
// A block of zero bytes, or of codes that all mean zero, has a scale of its own only if its codes were made from
// something else: whoever quantizes zeros gives all such blocks the same scale. (One more may come from blocks whose
// scale has underflowed.) Where no block has a scale of its own, and in matrices without scales, there is only the
// length of a run of zero bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "nibble/numerics/encoded.h"

namespace nibble {

// Up to three different things; how many there are does not depend on the order in which they come.
class FewKeys {
 public:
  void add(uint64_t key);
  void add(const FewKeys& other);
  uint64_t count() const { return count_; }  // 3: three or more

 private:
  std::array<uint64_t, 3> keys_{};
  uint64_t count_ = 0;
};

// Elements [first, first + count) of a weight, slices one behind the other.
struct ElementRun {
  uint64_t first = 0, count = 0;
  void keep_longest(const ElementRun& other);
};

struct HoleStats {
  // Blocks of single rows that hold nothing but zeros or zero bytes, under a scale that is not zero.
  uint64_t blocks = 0;
  uint64_t constant = 0;          // other blocks that are one byte throughout: where these abound, so are those
  FewKeys scales;                 // theirs, with their zero points
  std::optional<uint64_t> first;  // element where the first of them begins
  ElementRun longest;             // of such blocks, one behind the other, whose scales differ
  ElementRun zero_bytes;          // the longest run of zero bytes
  uint64_t run_elements = 0;      // in all such runs of kShortestRun bytes or more
  void merge(const HoleStats& other);
};

inline constexpr uint64_t kShortestRun = 64;  // bytes

// Adds the runs of zero bytes; element 0 of `bytes` is element `first` of the weight.
void add_zero_runs(std::span<const std::byte> bytes, uint64_t bits, uint64_t first, HoleStats* stats);

// Looks at blocks as they pass: row by row, with the largest magnitude code of each (code_stats.h).
class HoleFinder {
 public:
  // `first`: place of the rows' first element in the weight.
  HoleFinder(const EncodedMatrix& rows, uint64_t first, HoleStats* stats);
  void row(uint64_t row, std::span<const uint8_t> maxima);
  void end() { end_run(); }

 private:
  bool is_hole(const std::byte* codes, uint64_t bytes, uint8_t maximum) const;
  void add(uint64_t row, uint64_t block);
  void end_run();

  const EncodedMatrix& m_;
  uint64_t first_;
  HoleStats* stats_;
  bool applies_ = false;
  uint64_t block_cols_ = 0, blocks_ = 0, need_ = 3;
  uint8_t of_zero_byte_ = 0;  // magnitude of code 0
  ElementRun run_;
  FewKeys run_scales_;
};

// All codes of some rows, if they are one byte throughout: one that nobody wrote. A constant block's code is at an end
// of the range, since its scale is made from it: of such bytes only zero is taken for what was never written.
struct FlatCodes {
  std::byte byte{};
  uint64_t key = 0;         // the first scale, with its zero point
  bool differ = false;      // between blocks of one row
  bool row_scales = false;  // a block is a row or more: rows have to be compared with each other
};
std::optional<FlatCodes> flat_codes(const EncodedMatrix& rows);

// The same of a matrix, from pieces in any order.
class FlatState {
 public:
  void add(const std::optional<FlatCodes>& piece);
  // One byte throughout, although blocks differ in their scales.
  bool is_unwritten() const { return seen_ && flat_ && differ_; }
  std::byte byte() const { return first_.byte; }

 private:
  bool seen_ = false, flat_ = true, differ_ = false;
  FlatCodes first_;
};

}  // namespace nibble
