#include "nibble/kernels/weight_layout.h"

#include <fmt/format.h>

#include "nibble/base/check.h"

namespace nibble {
namespace {

constexpr uint64_t kDenseTile = 32;
constexpr uint64_t kSharedTile = 128;  // of rows with one scale: it is repeated in each tile

uint64_t code_bits_of(CodeKind codes) {
  switch (codes) {
    case CodeKind::kE2M1:
    case CodeKind::kInt4: return 4;
    case CodeKind::kInt8:
    case CodeKind::kE4M3: return 8;
    case CodeKind::kBF16: return 16;
    case CodeKind::kF32: return 32;
  }
  return 0;
}

std::optional<CodeKind> kind_of(Element element) {
  switch (element) {
    case Element::kE2M1: return CodeKind::kE2M1;
    case Element::kInt4:
    case Element::kUint4: return CodeKind::kInt4;
    case Element::kInt8: return CodeKind::kInt8;
    case Element::kE4M3: return CodeKind::kE4M3;
    case Element::kBF16: return CodeKind::kBF16;
    case Element::kF32: return CodeKind::kF32;
    default: return std::nullopt;
  }
}

LayoutChoice refused(std::string obstacle) { return {std::nullopt, std::move(obstacle)}; }

// One scale for each tile and row.
LayoutChoice with_scales_inside(WeightLayout layout, const Format& format) {
  layout.scale = format.scale;
  layout.zero = format.zero;
  if (format.block_cols != 0) {
    layout.tile_cols = format.block_cols;
  } else {
    layout.tile_cols = layout.k % kSharedTile == 0 ? kSharedTile : layout.k % kDenseTile == 0 ? kDenseTile : kRowGroup;
  }
  if (layout.tile_cols % kRowGroup != 0) {
    return refused(fmt::format("groups of {} columns: kernels take multiples of {}", layout.tile_cols, kRowGroup));
  }
  if (layout.k % layout.tile_cols != 0) {
    return refused(fmt::format("K = {} is no multiple of {}", layout.k, layout.tile_cols));
  }
  return {layout, ""};
}

LayoutChoice with_scales_apart(WeightLayout layout, const Format& format) {
  layout.apart_cols = format.block_cols != 0 ? format.block_cols : layout.padded_k();
  layout.apart_lanes = format.block_rows % kRowGroup == 0 ? 1 : kRowGroup;
  if (layout.apart_cols % layout.tile_cols != 0) {
    return refused(
        fmt::format("blocks of {} columns: kernels take multiples of {}", layout.apart_cols, layout.tile_cols));
  }
  return {layout, ""};
}

}  // namespace

uint64_t WeightLayout::code_bytes() const { return kRowGroup * tile_cols * code_bits_of(codes) / 8; }

uint64_t WeightLayout::zero_bytes() const {
  switch (zero) {
    case ZeroPoint::kNone: return 0;
    case ZeroPoint::kCode: return kRowGroup;
    case ZeroPoint::kMin: return kRowGroup * sizeof(float);
  }
  return 0;
}

uint64_t WeightLayout::apart_scales() const {
  return apart_cols == 0 ? 0 : (padded_k() + apart_cols - 1) / apart_cols * apart_lanes;
}

uint64_t WeightLayout::apart_offset() const { return (row_groups() * row_group_bytes() + 63) / 64 * 64; }

uint64_t WeightLayout::bytes() const { return apart_offset() + row_groups() * apart_scales() * sizeof(float); }

LayoutChoice choose_layout(const Format& format, uint64_t n, uint64_t k) {
  const std::optional<CodeKind> kind = kind_of(format.element);
  if (!kind) return refused(fmt::format("no kernel multiplies {} elements", element_name(format.element)));
  if (format.zero == ZeroPoint::kMin && *kind != CodeKind::kInt4) return refused("no kernel takes 8-bit minima");
  if (format.zero == ZeroPoint::kCode && *kind != CodeKind::kInt4) return refused("no kernel takes 8-bit zero points");
  WeightLayout layout{.codes = *kind, .tile_cols = kDenseTile, .n = n, .k = k};
  if (format.is_dense()) return {layout, ""};
  // A scale for many rows, or for all columns of 8-bit floats, does not fit into tiles.
  const bool apart = format.block_rows != 1 || (*kind == CodeKind::kE4M3 && format.block_cols == 0);
  if (apart && *kind != CodeKind::kE4M3) return refused("no kernel takes integers with a scale for several rows");
  return apart ? with_scales_apart(layout, format) : with_scales_inside(layout, format);
}

std::string_view code_kind_name(CodeKind kind) {
  switch (kind) {
    case CodeKind::kE2M1: return "e2m1";
    case CodeKind::kInt4: return "int4";
    case CodeKind::kInt8: return "int8";
    case CodeKind::kE4M3: return "e4m3";
    case CodeKind::kBF16: return "bf16";
    case CodeKind::kF32: return "f32";
  }
  return "";
}

}  // namespace nibble
