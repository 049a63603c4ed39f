// How weights lie in memory for the kernels of this processor. One layout for all of them, so that the kernel may
// change with the number of tokens and no second copy is held.
//
// An (N, K) matrix is cut into row groups of 16 rows, a row group into tiles of `tile_cols` columns. Tiles of a row
// group follow each other along K, row groups follow each other; a tile is
//
//   scales   16 stored scales, one a row (none: the format has none, or they lie apart)
//   zeros    16 bytes, one a row (asymmetric integers), or 16 float32 minima (GGUF's q4_1, q4_k)
//   codes    chunks along K. Lane r of a chunk is row r:
//              4 bits   8 columns, 4 bytes a lane: byte j holds column 2j in its low nibble, 2j + 1 in the high one
//              int8     4 columns, 4 bytes a lane, columns in order
//              bf16     2 columns, 4 bytes a lane, the even one low
//              e4m3    2 columns, 2 bytes a lane, columns in order: binary16's bits are a shift away
//              f32     1 column, one element a lane
//
// so that a lane is what it was in a row of the file, and a vector of 16 lanes is 16 rows. Rows beyond N and columns
// beyond K are zero codes. Scales that many tiles share (FP8 in blocks, a row or a matrix) lie apart, as
// float32 behind the last tile: for each row group and each `apart_cols` columns 16 of them, or one if all 16 rows
// share it.
//
// A second-level scale is one float32 of the matrix (`multiplier`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nibble/numerics/encoded.h"

namespace nibble {

inline constexpr uint64_t kRowGroup = 16;

// kInt4 also holds unsigned codes, which have a minimum instead of a zero point.
enum class CodeKind : uint8_t { kE2M1, kInt4, kInt8, kE4M3, kBF16, kF32 };
std::string_view code_kind_name(CodeKind kind);  // "e2m1", "int4", …

struct WeightLayout {
  CodeKind codes = CodeKind::kF32;
  ScaleType scale = ScaleType::kNone;  // in the tiles
  ZeroPoint zero = ZeroPoint::kNone;
  uint64_t tile_cols = 32;  // a multiple of 16
  uint64_t apart_cols = 0;  // 0: no scales apart
  uint64_t apart_lanes = 0;
  uint64_t n = 0, k = 0;

  uint64_t row_groups() const { return (n + kRowGroup - 1) / kRowGroup; }
  uint64_t tiles() const { return (k + tile_cols - 1) / tile_cols; }  // of a row group
  uint64_t padded_k() const { return tiles() * tile_cols; }
  uint64_t scale_bytes() const { return kRowGroup * scale_type_bytes(scale); }  // of a tile
  uint64_t zero_bytes() const;                                                  // of a tile
  uint64_t code_bytes() const;                                                  // of a tile
  uint64_t tile_bytes() const { return scale_bytes() + zero_bytes() + code_bytes(); }
  uint64_t row_group_bytes() const { return tiles() * tile_bytes(); }
  uint64_t apart_scales() const;  // of a row group
  uint64_t apart_offset() const;  // of the first of them: behind the tiles, a multiple of 64
  uint64_t bytes() const;         // of the matrix
  // E2M1 doubled is an integer too.
  bool has_integers() const { return codes == CodeKind::kE2M1 || codes == CodeKind::kInt4 || codes == CodeKind::kInt8; }
  // Columns whose products are summed before a scale is applied: 32, or 16 where a scale belongs to 16.
  uint64_t run_cols() const { return tile_cols % 32 == 0 ? 32 : 16; }
  friend bool operator==(const WeightLayout&, const WeightLayout&) = default;
};

struct LayoutChoice {
  std::optional<WeightLayout> layout;
  std::string obstacle;  // why there is none, with the numbers
};

// The layout of an (N, K) matrix of a format. There is none for formats that no kernel multiplies.
LayoutChoice choose_layout(const Format& format, uint64_t n, uint64_t k);

// A matrix in that layout; does not own its bytes.
struct ResidentMatrix {
  WeightLayout layout;
  const std::byte* data = nullptr;  // layout.bytes(), aligned to 64
  float multiplier = 1;

  const std::byte* row_group(uint64_t group) const { return data + group * layout.row_group_bytes(); }
  const float* apart(uint64_t group) const {
    return reinterpret_cast<const float*>(data + layout.apart_offset()) + group * layout.apart_scales();
  }
};

}  // namespace nibble
