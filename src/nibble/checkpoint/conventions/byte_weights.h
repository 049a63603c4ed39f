// Weights of one byte an element (E4M3, I8) with a tensor of scales beside them: one scale for everything, one a
// row, one a group of columns, or one a block. Several conventions store them alike and differ in names only.
//
// value(r, c) = element * scale[r / block_rows][c / block_cols]; blocks at the edge are smaller, so a scale row is
// found by r / block_rows and never by dividing the row counts (576 rows in blocks of 128 have 5 scale rows).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nibble/checkpoint/conventions/claim.h"
#include "nibble/checkpoint/conventions/stored_formats.h"

namespace nibble {

struct ByteNames {
  std::string_view weight;  // suffix of the elements
  std::string_view scale;   // suffix of the scales; always multiplied by, whatever it is called
  std::string_view input_scale;
  std::string_view zero_point;  // I8, of the scales' shape; "" if the convention has none
};

// Block sizes to try when no carrier declares one.
inline constexpr std::pair<uint64_t, uint64_t> kUsualBlock{128, 128};

struct ByteSizes {
  const DeclaredSizes* declared = nullptr;
  std::span<const std::pair<uint64_t, uint64_t>> usual_blocks = {&kUsualBlock, 1};
};

// The grid in which scales of shape `scale` go with a weight of shape `weight`; null if there is none.
std::optional<ScaleGrid> match_grid(std::span<const uint64_t> weight, std::span<const uint64_t> scale, ScaleType type,
                                    const ByteSizes& sizes);

// Claims the module's byte weight. False if there is none, or it was refused.
bool claim_byte_weight(Claim* claim, const ByteNames& names, std::string weight_name, const ByteSizes& sizes);
EncodedMatrix read_byte_weight(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                               uint64_t rows);

// The group size that makes `scale_cols` scales of `cols` columns; null if no carrier declares it. Without any declared
// size every even split is believed. 0: whole rows share.
std::optional<uint64_t> match_group(uint64_t cols, uint64_t scale_cols, const DeclaredSizes* declared);

}  // namespace nibble
