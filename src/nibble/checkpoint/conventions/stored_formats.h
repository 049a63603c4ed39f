// The formats that conventions read, built from what is stored: names follow numerics' families where a family knows
// the format, so that `inspect` and `quantize` speak of the same thing.
#pragma once

#include <cstdint>
#include <string_view>

#include "nibble/numerics/format.h"

namespace nibble {

// Which part of the matrix shares a scale; 0 stands for all rows or all columns.
struct ScaleGrid {
  uint64_t block_rows = 1, block_cols = 0;
};

// Floating-point numbers, of whatever width.
bool is_float_scale(ScaleType type);
// 4- or 8-bit integers, offset binary, along rows in groups of `group` columns (0: whole rows).
Format int_format(uint64_t bits, uint64_t group, ScaleType scale, bool zeros);
// The low `bits` bits of an offset-binary zero point as the canonical arrays have it: 0..15, or a signed byte.
uint8_t canonical_zero(uint32_t offset_binary, uint64_t bits);
// E4M3 or I8 elements with scales in any grid.
Format byte_format(Element element, const ScaleGrid& grid, ScaleType scale, bool zeros = false);
Format mxfp4_format();
Format nvfp4_format();
// A type without scales: values stand for themselves.
Format plain_format(Element element);
// A type that is copied and never decoded.
Format opaque_format(std::string_view type_name);

}  // namespace nibble
