#include "nibble/kernels/cuda/fragment_layout.h"

#include <fmt/format.h>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"

namespace nibble {
namespace {

// What of a format no kernel of the device takes; "" if all of it is taken.
std::string format_obstacle(const Format& format) {
  const bool e2m1 = format.element == Element::kE2M1;
  if (!e2m1 && format.element != Element::kInt4) {
    return fmt::format("{} weights are not four-bit ones", element_name(format.element));
  }
  if (format.zero != ZeroPoint::kNone) return "zero points are not taken on the GPU";
  if (format.block_rows != 1) return "a scale that rows share is not taken";
  const bool taken = e2m1 ? (format.scale == ScaleType::kE8M0 && format.block_cols == 32) ||
                                (format.scale == ScaleType::kE4M3 && format.block_cols == 16)
                          : format.scale == ScaleType::kBF16 &&
                                (format.block_cols == 32 || format.block_cols == 64 || format.block_cols == 128);
  if (taken) return "";
  return fmt::format(
      "{} scales of {} columns on {} are not taken: groups of 32 with e8m0 or 16 with e4m3 on e2m1, of "
      "32, 64 or 128 with bf16 on int4 are",
      scale_type_name(format.scale), format.block_cols, element_name(format.element));
}

}  // namespace

FragmentLayoutChoice choose_fragment_layout(const Format& format, uint64_t n, uint64_t k) {
  std::string obstacle = format_obstacle(format);
  if (!obstacle.empty()) return {std::nullopt, std::move(obstacle)};
  if (n == 0 || n % kFragmentRows != 0) {
    return {std::nullopt, fmt::format("N = {} is not a multiple of {}", n, kFragmentRows)};
  }
  const uint64_t multiple = format.block_cols > 32 ? format.block_cols : 32;
  if (k == 0 || k % multiple != 0) return {std::nullopt, fmt::format("K = {} is not a multiple of {}", k, multiple)};
  if (!checked_mul(n, k)) return {std::nullopt, fmt::format("{} x {} weights are beyond 64 bits", n, k)};
  FragmentLayout layout;
  layout.codes = format.element == Element::kE2M1 ? CodeKind::kE2M1 : CodeKind::kInt4;
  layout.scale = format.scale;
  layout.group = format.block_cols;
  layout.n = n;
  layout.k = k;
  return {layout, ""};
}

FragmentPlace fragment_place(const FragmentLayout& layout, uint64_t row, uint64_t col) {
  NIBBLE_CHECK(row < layout.n && col < layout.k);
  const uint64_t tile = col / layout.tile_cols(), of_tile = col % layout.tile_cols(), cols = layout.cols_of(tile);
  const uint64_t base = row / kFragmentRows * layout.row_tile_bytes() + tile * layout.tile_bytes(layout.tile_cols());
  const uint64_t lane_row = row % 8, upper = row % kFragmentRows / 8;
  const uint64_t block = of_tile / kFragmentBlock, of_block = of_tile % kFragmentBlock;
  const uint64_t words = cols - block * kFragmentBlock < kFragmentBlock ? 2 : 4;  // of a lane in this block
  const uint64_t lane = lane_row * 4 + of_block % 32 / 8;
  FragmentPlace place;
  place.word = base + block * (kFragmentBlock * kFragmentRows / 2) + (lane * words + of_block / 32 * 2 + upper) * 4;
  place.code = static_cast<uint32_t>(col % 8);
  const uint64_t groups = cols / layout.group;
  place.scale = base + cols * kFragmentRows / 2 +
                ((lane_row * 2 + upper) * groups + of_tile / layout.group) * scale_type_bytes(layout.scale);
  return place;
}

}  // namespace nibble
