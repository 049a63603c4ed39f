#include "nibble/kernels/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/kernels/cpu/interleave_words.h"
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

// Everything of row groups that lies in tiles.
class TilePacker {
 public:
  TilePacker(const WeightLayout& layout, const EncodedView& in)
      : layout_(layout),
        in_(in),
        row_bytes_(in.format->code_row_bytes(in.cols)),
        tile_bytes_(layout.tile_bytes()),
        tile_row_bytes_(layout.code_bytes() / kRowGroup),
        scale_bytes_(scale_type_bytes(layout.scale)),
        scale_cols_(layout.scale == ScaleType::kNone ? 0 : in.format->scale_cols(in.cols)),
        zeros_at_(layout.scale_bytes()),
        codes_at_(zeros_at_ + layout.zero_bytes()) {}

  // Rows [first, first + count) of the view.
  void pack(uint64_t first, uint64_t count, std::byte* tiles) const {
    const std::byte* rows[kRowGroup];
    for (uint64_t lane = 0; lane < count; ++lane) rows[lane] = in_.codes + (first + lane) * row_bytes_;
    for (uint64_t t = 0, end = layout_.tiles(); t < end; ++t, tiles += tile_bytes_) {
      const uint64_t scale_col = in_.format->block_cols == 0 ? 0 : t;  // a row's only scale is repeated
      for (uint64_t lane = 0; lane < count; ++lane) pack_lane((first + lane) * scale_cols_ + scale_col, lane, tiles);
      pack_codes(rows, count, std::min(tile_row_bytes_, row_bytes_ - t * tile_row_bytes_), tiles + codes_at_);
      for (uint64_t lane = 0; lane < count; ++lane) rows[lane] += tile_row_bytes_;
    }
  }

 private:
  // Scale and zero point of a block.
  void pack_lane(uint64_t block, uint64_t lane, std::byte* tile) const {
    if (scale_cols_ != 0) {
      const std::byte* scale = in_.scales + block * scale_bytes_;
      check_scale(scale_value(layout_.scale, scale));
      std::memcpy(tile + lane * scale_bytes_, scale, scale_bytes_);
    }
    std::byte* zeros = tile + zeros_at_;
    if (layout_.zero == ZeroPoint::kCode) zeros[lane] = static_cast<std::byte>(in_.zeros[block]);
    if (layout_.zero == ZeroPoint::kMin) std::memcpy(zeros + lane * sizeof(float), in_.mins + block, sizeof(float));
  }

  void pack_codes(const std::byte* const* rows, uint64_t count, uint64_t bytes, std::byte* out) const {
    const bool pairs = layout_.codes == CodeKind::kE4M3;
    if (count == kRowGroup && bytes == tile_row_bytes_) {
      const uint64_t words = bytes / kWordBytes;
      if (pairs) return interleave_half_words(rows, words, out);
      for (uint64_t lane = 0; lane < kRowGroup; lane += 4) {
        interleave_four_words(rows + lane, words, kRowGroup, out + lane * kWordBytes);
      }
      return;
    }
    for (uint64_t lane = 0; lane < count; ++lane) {
      pairs ? place_lanes<2>(rows[lane], bytes, lane, out) : place_lanes<4>(rows[lane], bytes, lane, out);
    }
  }

  // Asked for once: there are as many tiles as a model has weights, nearly.
  const WeightLayout& layout_;
  const EncodedView& in_;
  uint64_t row_bytes_, tile_bytes_, tile_row_bytes_, scale_bytes_, scale_cols_, zeros_at_, codes_at_;
};

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
  const TilePacker packer(layout, rows);
  for (uint64_t first = 0; first < rows.rows; first += kRowGroup) {
    const uint64_t group = (row_begin + first) / kRowGroup;
    std::byte* tiles = matrix + group * layout.row_group_bytes();
    const uint64_t count = std::min(kRowGroup, rows.rows - first);
    const bool partial = count < kRowGroup || layout.k % layout.tile_cols != 0;
    if (partial) std::memset(tiles, 0, layout.row_group_bytes());
    packer.pack(first, count, tiles);
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
