#include "nibble/checkpoint/conventions/stored_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace nibble {
namespace {

// A byte's zero point is a byte; at 4 bits numerics' own count is right.
uint64_t block_bits(Element element, ScaleType scale, bool zeros) {
  return zeros && element == Element::kInt8 ? 8 * scale_type_bytes(scale) + 8 : 0;
}

std::string group_name(uint64_t group) { return group == 0 ? "channel" : fmt::format("g{}", group); }

std::string byte_name(Element element, const ScaleGrid& grid, ScaleType scale) {
  if (element == Element::kInt8) return "int8-" + (grid.block_rows == 0 ? "tensor" : group_name(grid.block_cols));
  if (grid.block_rows == 0) return "fp8-tensor";
  if (grid.block_rows > 1) {
    if (grid.block_rows == 128 && grid.block_cols == 128) return "fp8-block";
    return fmt::format("fp8-block{}x{}", grid.block_rows, grid.block_cols);
  }
  if (scale == ScaleType::kE8M0 && grid.block_cols == 32) return "mxfp8";
  return "fp8-" + group_name(grid.block_cols);
}

}  // namespace

bool is_float_scale(ScaleType type) {
  return type == ScaleType::kF32 || type == ScaleType::kBF16 || type == ScaleType::kF16;
}

Format int_format(uint64_t bits, uint64_t group, ScaleType scale, bool zeros) {
  const Element element = bits == 4 ? Element::kInt4 : Element::kInt8;
  return {.name = fmt::format("int{}-{}{}", bits, group_name(group), zeros ? "-asym" : ""),
          .element = element,
          .scale = scale,
          .block_rows = 1,
          .block_cols = group,
          .zero = zeros ? ZeroPoint::kCode : ZeroPoint::kNone,
          .two_level = false,
          .container_block_bits = block_bits(element, scale, zeros)};
}

uint8_t canonical_zero(uint32_t offset_binary, uint64_t bits) {
  return static_cast<uint8_t>(bits == 4 ? offset_binary & 0xF : (offset_binary & 0xFF) ^ 0x80);
}

Format byte_format(Element element, const ScaleGrid& grid, ScaleType scale, bool zeros) {
  return {.name = byte_name(element, grid, scale) + (zeros ? "-asym" : ""),
          .element = element,
          .scale = scale,
          .block_rows = grid.block_rows,
          .block_cols = grid.block_cols,
          .zero = zeros ? ZeroPoint::kCode : ZeroPoint::kNone,
          .two_level = false,
          .container_block_bits = block_bits(element, scale, zeros)};
}

Format mxfp4_format() {
  return {.name = "mxfp4", .element = Element::kE2M1, .scale = ScaleType::kE8M0, .block_cols = 32};
}

Format nvfp4_format() {
  return {.name = "nvfp4", .element = Element::kE2M1, .scale = ScaleType::kE4M3, .block_cols = 16, .two_level = true};
}

Format plain_format(Element element) { return {.name = std::string(element_name(element)), .element = element}; }

Format opaque_format(std::string_view type_name) {
  Format format;
  format.name = type_name;
  std::transform(format.name.begin(), format.name.end(), format.name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return format;
}

}  // namespace nibble
