#include "nibble/kernels/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/numerics/decode.h"

namespace nibble {
namespace {

// The lanes of a row in all chunks: `source` holds the row's codes, cut off at `bytes`.
template <uint64_t kLane>
void place_lanes(const std::byte* source, uint64_t bytes, uint64_t row, std::byte* codes) {
  uint64_t at = 0;
  for (; at + kLane <= bytes; at += kLane) std::memcpy(codes + at * kRowGroup + row * kLane, source + at, kLane);
  if (at < bytes) std::memcpy(codes + at * kRowGroup + row * kLane, source + at, bytes - at);
}

void check_scale(float value) {
  if (!std::isfinite(value)) {
    throw Error("a scale is not a finite number")
        .value("scale", value)
        .way_out("run `nibble verify` on the checkpoint");
  }
}

// Everything of one row that lies in tiles.
void pack_row(const WeightLayout& layout, const EncodedView& in, uint64_t row, uint64_t lane, std::byte* tiles) {
  const Format& format = *in.format;
  const std::byte* codes = in.codes + row * format.code_row_bytes(in.cols);
  const uint64_t row_bytes = format.code_row_bytes(in.cols);
  const uint64_t tile_row_bytes = layout.code_bytes() / kRowGroup;
  const uint64_t scale_bytes = scale_type_bytes(layout.scale);
  const uint64_t scale_cols = layout.scale == ScaleType::kNone ? 0 : format.scale_cols(in.cols);
  for (uint64_t t = 0; t < layout.tiles(); ++t) {
    std::byte* tile = tiles + t * layout.tile_bytes();
    const uint64_t scale_col = format.block_cols == 0 ? 0 : t;  // a row's only scale is repeated
    if (scale_cols != 0) {
      const std::byte* scale = in.scales + (row * scale_cols + scale_col) * scale_bytes;
      check_scale(scale_value(layout.scale, scale));
      std::memcpy(tile + lane * scale_bytes, scale, scale_bytes);
    }
    std::byte* zeros = tile + layout.scale_bytes();
    const uint64_t block = row * scale_cols + scale_col;
    if (layout.zero == ZeroPoint::kCode) zeros[lane] = static_cast<std::byte>(in.zeros[block]);
    if (layout.zero == ZeroPoint::kMin) std::memcpy(zeros + lane * sizeof(float), in.mins + block, sizeof(float));
    std::byte* out = tile + layout.scale_bytes() + layout.zero_bytes();
    const uint64_t from = t * tile_row_bytes;
    const uint64_t bytes = std::min(tile_row_bytes, row_bytes - from);
    const bool pairs = layout.codes == CodeKind::kE4M3;
    pairs ? place_lanes<2>(codes + from, bytes, lane, out) : place_lanes<4>(codes + from, bytes, lane, out);
  }
}

// Scales apart of one row group, from the rows of scales that its rows share.
void pack_apart(const WeightLayout& layout, const EncodedView& in, uint64_t first_row, float* out) {
  const Format& format = *in.format;
  const uint64_t cols = layout.apart_scales() / layout.apart_lanes;
  const uint64_t scale_cols = format.scale_cols(in.cols);
  const bool one_for_all = format.block_rows == 0 && format.block_cols == 0;
  for (uint64_t lane = 0; lane < layout.apart_lanes; ++lane) {
    const uint64_t row = first_row + lane;
    for (uint64_t c = 0; c < cols; ++c) {
      float value = 0;
      if (one_for_all && in.scales == nullptr) {
        value = in.tensor_scale.value;
      } else if (row < in.rows) {
        const uint64_t scale_row = format.block_rows == 0 ? 0 : (in.row_phase + row) / format.block_rows;
        const uint64_t index = scale_row * scale_cols + std::min(c, scale_cols - 1);
        value = scale_value(format.scale, in.scales + index * format.scale_bytes());
      }
      check_scale(value);
      out[c * layout.apart_lanes + lane] = value;
    }
  }
}

}  // namespace

void pack_rows(const WeightLayout& layout, const EncodedView& rows, uint64_t row_begin, std::byte* matrix) {
  NIBBLE_CHECK(rows.column_group == nullptr);
  NIBBLE_CHECK(row_begin % kRowGroup == 0 && rows.cols == layout.k && row_begin + rows.rows <= layout.n);
  NIBBLE_CHECK(rows.rows % kRowGroup == 0 || row_begin + rows.rows == layout.n);
  for (uint64_t first = 0; first < rows.rows; first += kRowGroup) {
    const uint64_t group = (row_begin + first) / kRowGroup;
    std::byte* tiles = matrix + group * layout.row_group_bytes();
    const uint64_t count = std::min(kRowGroup, rows.rows - first);
    const bool partial = count < kRowGroup || layout.k % layout.tile_cols != 0;
    if (partial) std::memset(tiles, 0, layout.row_group_bytes());
    for (uint64_t lane = 0; lane < count; ++lane) pack_row(layout, rows, first + lane, lane, tiles);
    if (layout.apart_cols != 0) {
      auto* apart = reinterpret_cast<float*>(matrix + layout.apart_offset()) + group * layout.apart_scales();
      pack_apart(layout, rows, first, apart);
    }
  }
}

float multiplier_of(const Format& format, const TensorScale& scale) {
  if (!format.two_level) return 1;
  return scale.level == SecondLevel::kDivide     ? 1 / scale.value
         : scale.level == SecondLevel::kMultiply ? scale.value
                                                 : 1;
}

}  // namespace nibble
