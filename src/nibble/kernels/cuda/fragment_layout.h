// How four-bit weights lie in a Hopper GPU's memory: one layout per format that every kernel of the device reads, so
// that the kernel may change with the number of tokens and no second copy is held. Written once on the host
// (fragment_pack.h).
//
// An (N, K) matrix, N a multiple of 16 and K of 32, is cut into row tiles of 16 rows; a row tile into tiles of
// `tile_cols` columns that follow each other along K, the last one of a row tile being narrower where K leaves a rest
// (32 columns). Nothing is padded. A tile is its codes and, right behind them, its scales:
//
//   codes    blocks of 64 columns, 512 bytes: lane (g, t) of a warp, g = lane / 4, t = lane % 4, owns four words
//              word 0: row g,     columns 8t .. 8t + 7           word 2: row g,     columns 32 + 8t .. 32 + 8t + 7
//              word 1: row g + 8, the same columns               word 3: row g + 8, the same columns
//            (a block of 32 columns: 256 bytes, words 0 and 1 only)
//   scales   for g = 0 .. 7: those of row g, then those of row g + 8, in the stored type, in the order of K
//
// Why this order. A lane's words are its share of the A operand of mma.m16n8k16 and of a warp's 16 rows of
// wgmma.m64nNk16 alike: registers a0 a2 hold row g, a1 a3 row g + 8. Which columns of a k16 step a lane holds is ours
// to choose, as long as the activations follow. With "lane t owns columns 8t .. 8t + 7 of 32", two k16 steps of BF16
// take the pairs (0,1)(2,3) and (4,5)(6,7) of the word, one k32 step of FP8 takes its two halves, so both read the same
// words; a token's activations for both steps are 16 contiguous bytes of its row, as they lie; and a group of 16
// columns never splits a word, so its scale can be multiplied onto the lane's weights. A tile is contiguous with its
// scales: one bulk copy of any whole number of tiles brings both, no tensor map is needed, and a warp's 512 bytes of
// shared memory are free of bank conflicts.
//
// How a word holds its eight codes is the format's (fragment_words.h).
//
// A gate_up matrix has gate and up interleaved by eights: row tile r holds rows 8r .. 8r + 7 of gate as its rows g and
// of up as its rows g + 8, so that one lane has both sums and applies the activation alone.
//
// Scales are stored exactly. E8M0 exponents are shifted by a constant of the matrix so that the largest is 240 (the
// multiplier undoes it), which keeps partial sums in float32's range; a matrix whose scales span more than 128 binades
// is refused and not clamped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "nibble/kernels/weight_layout.h"
#include "nibble/numerics/format.h"

namespace nibble {

inline constexpr uint64_t kFragmentRows = 16;
inline constexpr uint64_t kFragmentBlock = 64;  // columns of a block of codes
inline constexpr int kLargestE8M0 = 240;        // what the largest exponent of a matrix is stored as
inline constexpr int kLargestE8M0Span = 128;    // binades between the largest and the smallest

struct FragmentLayout {
  CodeKind codes = CodeKind::kE2M1;  // kE2M1 or kInt4
  ScaleType scale = ScaleType::kE8M0;
  uint64_t group = 32;  // columns that share a scale: 16, 32, 64 or 128
  uint64_t n = 0, k = 0;

  uint64_t tile_cols() const { return group > kFragmentBlock ? group : kFragmentBlock; }
  uint64_t row_tiles() const { return n / kFragmentRows; }
  uint64_t tiles() const { return (k + tile_cols() - 1) / tile_cols(); }  // of a row tile, a narrow one included
  uint64_t cols_of(uint64_t tile) const {
    return k - tile * tile_cols() < tile_cols() ? k - tile * tile_cols() : tile_cols();
  }
  // Bytes of a tile of so many columns; of a whole row tile; of the matrix.
  uint64_t tile_bytes(uint64_t cols) const {
    return cols * kFragmentRows / 2 + cols / group * kFragmentRows * scale_type_bytes(scale);
  }
  uint64_t row_tile_bytes() const { return tile_bytes(k); }
  uint64_t bytes() const { return row_tiles() * row_tile_bytes(); }
  friend bool operator==(const FragmentLayout&, const FragmentLayout&) = default;
};

struct FragmentLayoutChoice {
  std::optional<FragmentLayout> layout;
  std::string obstacle;  // why there is none, with the numbers
};

// The layout of an (N, K) matrix of a format.
FragmentLayoutChoice choose_fragment_layout(const Format& format, uint64_t n, uint64_t k);

// Where the word with the code at (row, col) lies, and which of its eight codes it is; where its scale lies.
struct FragmentPlace {
  uint64_t word = 0;  // byte offset in the matrix, a multiple of 4
  uint32_t code = 0;  // 0 .. 7
  uint64_t scale = 0;
};
FragmentPlace fragment_place(const FragmentLayout& layout, uint64_t row, uint64_t col);

}  // namespace nibble
