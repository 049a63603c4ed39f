#include "nibble/verify/row_stats.h"

#include <algorithm>
#include <array>

#include "nibble/numerics/decode.h"
#include "nibble/verify/code_stats.h"
#include "nibble/verify/scale_stats.h"

namespace nibble {
namespace {

void count_codes(const EncodedMatrix& m, std::vector<uint64_t>* histogram) {
  ByteCounts counts{};
  count_bytes(m.codes, &counts);
  if (element_bits(m.format.element) == 8) {
    histogram->assign(counts.begin(), counts.end());
    return;
  }
  histogram->assign(16, 0);
  for (size_t b = 0; b < 256; ++b) {
    (*histogram)[b & 15] += counts[b];
    (*histogram)[b >> 4] += counts[b];
  }
  if (m.cols % 2 == 0) return;
  const uint64_t row_bytes = m.format.code_row_bytes(m.cols);
  for (uint64_t r = 0; r < m.rows; ++r)  // the last high nibble of a row is padding
    --(*histogram)[static_cast<size_t>(m.codes[(r + 1) * row_bytes - 1]) >> 4];
}

void count_zero_points(const EncodedMatrix& m, WeightStats* stats) {
  stats->zero_points = m.zeros.size();
  for (const uint8_t zero : m.zeros) {
    stats->zero_point_sum += zero;
    stats->zero_point_min = std::min(stats->zero_point_min, zero);
    stats->zero_point_max = std::max(stats->zero_point_max, zero);
  }
  stats->nonzero_mins =
      static_cast<uint64_t>(std::count_if(m.mins.begin(), m.mins.end(), [](float min) { return min != 0; }));
}

// How far the mean code of each block lies from its zero point. Whole blocks of single rows only.
void measure_shifts(const EncodedMatrix& m, WeightStats* stats) {
  const uint64_t bits = element_bits(m.format.element);
  const uint64_t block = m.format.block_cols == 0 ? m.cols : m.format.block_cols;
  const uint64_t scale_cols = m.format.scale_cols(m.cols);
  if (m.format.block_rows != 1 || block * bits % 8 != 0 || m.zeros.size() != m.rows * scale_cols) return;
  const uint64_t row_bytes = m.format.code_row_bytes(m.cols);
  const uint64_t block_bytes = block * bits / 8;
  for (uint64_t r = 0; r < m.rows; ++r) {
    for (uint64_t b = 0; (b + 1) * block <= m.cols; ++b) {
      const std::span<const std::byte> codes(m.codes.data() + r * row_bytes + b * block_bytes, block_bytes);
      const auto shift =
          static_cast<int64_t>(code_sum(codes, bits)) - static_cast<int64_t>(block * m.zeros[r * scale_cols + b]);
      ++stats->shifted_blocks;
      stats->shift_sum += shift;
      stats->shift_squares += static_cast<uint64_t>(shift * shift);
    }
  }
}

// Elements whose code alone makes them zero.
uint64_t count_zeros(const Format& format, const WeightStats& stats) {
  const auto& histogram = stats.code_histogram;
  if (format.zero == ZeroPoint::kCode) {
    const bool one = stats.zero_points != 0 && stats.zero_point_min == stats.zero_point_max;
    return one && stats.zero_point_min < histogram.size() ? histogram[stats.zero_point_min] : 0;
  }
  if (format.zero == ZeroPoint::kMin && stats.nonzero_mins != 0) return 0;
  const CodeShape shape = code_shape(format);
  uint64_t zeros = 0;
  for (size_t c = 0; c < histogram.size(); ++c) {
    if (code_magnitude(shape, element_bits(format.element), static_cast<uint8_t>(c)) == 0) zeros += histogram[c];
  }
  return zeros;
}

// The largest code of each block, and blocks whose scale contradicts it: zero where a code says otherwise, or negative
// where no code reaches the one extreme that has no opposite.
class BlockCounter {
 public:
  // `zero_scales`, `negative_scales`: whether any scale of the rows can be such.
  // `live_blocks`: their scales are to be looked at one by one. `first`: place of the rows in the weight.
  BlockCounter(const EncodedMatrix& m, bool zero_scales, bool negative_scales, bool live_blocks, uint64_t first,
               WeightStats* stats)
      : m_(m),
        stats_(stats),
        maxima_(m.format, m.cols),
        holes_(m, first, &stats->holes),
        live_blocks_(live_blocks),
        can_be_dead_(zero_scales && m.format.zero == ZeroPoint::kNone),
        can_be_negative_(negative_scales),
        extreme_(static_cast<uint8_t>(1U << (element_bits(m.format.element) - 1))) {
    stats->block_max_histogram.assign(element_bits(m.format.element) == 8 ? 129 : 16, 0);
    row_.resize(maxima_.blocks());
    block_row_.resize(maxima_.blocks());
  }

  void run() {
    const uint64_t row_bytes = m_.format.code_row_bytes(m_.cols);
    const uint64_t tall = m_.format.block_rows == 0 ? m_.rows : m_.format.block_rows;
    for (uint64_t begin = 0; begin < m_.rows; begin += tall) {
      std::fill(block_row_.begin(), block_row_.end(), uint8_t{0});
      for (uint64_t r = begin; r < std::min(begin + tall, m_.rows); ++r) {
        maxima_.row(m_.codes.data() + r * row_bytes, row_.data());
        for (size_t b = 0; b < row_.size(); ++b) block_row_[b] = std::max(block_row_[b], row_[b]);
      }
      add_block_row(begin / tall);
    }
    holes_.end();
  }

 private:
  void add_block_row(uint64_t scale_row) {
    const uint64_t size = m_.format.scale_bytes();
    const std::byte* scales = m_.scales.data() + scale_row * block_row_.size() * size;
    for (size_t b = 0; b < block_row_.size(); ++b) {
      ++stats_->block_max_histogram[block_row_[b]];
      if (can_be_dead_ && block_row_[b] != 0 && scale_value(m_.format.scale, scales + b * size) == 0)
        ++stats_->dead_blocks;
      if (can_be_negative_ && block_row_[b] != extreme_ && scale_value(m_.format.scale, scales + b * size) < 0)
        ++stats_->negative_short_blocks;
    }
    stats_->blocks += block_row_.size();
    holes_.row(scale_row, block_row_);
    if (live_blocks_) add_live_blocks(m_, scale_row, block_row_, &stats_->extremes);
  }

  const EncodedMatrix& m_;
  WeightStats* stats_;
  BlockMaxima maxima_;
  HoleFinder holes_;
  bool live_blocks_;
  bool can_be_dead_;  // with zero points code 0 is no zero
  bool can_be_negative_;
  uint8_t extreme_;
  std::vector<uint8_t> row_, block_row_;
};

// Blocks that do not lie side by side (columns regrouped), or that start inside a byte, are not looked at one by one.
bool blocks_are_plain(const EncodedMatrix& m) {
  const uint64_t block = m.format.block_cols;
  const bool whole_bytes = element_bits(m.format.element) == 8 || block == 0 || block >= m.cols || block % 2 == 0;
  return m.column_group.empty() && whole_bytes && m.cols != 0 &&
         m.scales.size() == m.format.scale_rows(m.rows) * m.format.scale_cols(m.cols) * m.format.scale_bytes();
}

}  // namespace

void add_rows(const EncodedMatrix& rows, const RowPlace& place, WeightStats* stats) {
  const Format& format = rows.format;
  stats->scanned = true;
  stats->elements = rows.rows * rows.cols;
  count_codes(rows, &stats->code_histogram);
  count_zero_points(rows, stats);
  stats->zeros = count_zeros(format, *stats);
  // A scale that all rows share comes with every cut and counts once.
  const bool own_scales = format.block_rows != 0 || place.row_begin == 0;
  if (own_scales) {
    const uint64_t before = format.block_rows == 0 ? 0 : place.row_begin / format.block_rows;
    const uint64_t scale_row = place.slice * format.scale_rows(place.slice_rows) + before;
    add_scales(rows.scales, format.scale, scale_row * format.scale_cols(rows.cols), &stats->scales);
  }
  const uint64_t first = (place.slice * place.slice_rows + place.row_begin) * rows.cols;
  stats->flat = flat_codes(rows);
  add_zero_runs(rows.codes, element_bits(format.element), first, &stats->holes);
  add_overflows(rows, first, &stats->extremes);
  const bool far_apart = own_scales && !add_blocks(rows, stats->scales, &stats->extremes);
  if (!blocks_are_plain(rows)) return;
  BlockCounter(rows, !own_scales || stats->scales.zeros > 0, !own_scales || stats->scales.negatives > 0, far_apart,
               first, stats)
      .run();
  if (format.zero != ZeroPoint::kCode) return;
  measure_shifts(rows, stats);
  add_zero_classes(rows, &stats->zero_classes);
}

}  // namespace nibble
