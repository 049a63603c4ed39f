#include "nibble/numerics/tile_encoder.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"
#include "nibble/numerics/rules/mse.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {
namespace {

// 4 KiB of float32: leaves the first-level cache room for input, codes and the arrays of the blocks.
constexpr uint64_t kPieceCols = 1024;

const std::byte* element_at(const DenseView& in, uint64_t row, uint64_t col) {
  return in.data + row * in.row_stride + col * (element_bits(in.element) / 8);
}

}  // namespace

TileEncoder::TileEncoder(const QuantizeOptions& options, const BitExactRecipe* recipe, const DenseView& in,
                         const TensorScale& tensor_scale, const MutableEncodedView& out)
    : options_(options),
      format_(options.format),
      rule_(*options.rule.rule),
      recipe_(recipe),
      in_(in),
      tensor_scale_(tensor_scale),
      out_(out),
      kernels_(simd::kernels()),
      block_cols_(format_.block_cols == 0 ? in.cols : format_.block_cols),
      tile_rows_(std::max<uint64_t>(format_.block_rows, 1)) {
  NIBBLE_CHECK(format_.block_rows != 0 || format_.block_cols == 0);
  if (recipe_ != nullptr) arithmetic_ = recipe_->arithmetic(in.element);
  const uint64_t piece = std::min(piece_cols(), in.cols);
  const uint64_t blocks = ceil_div(piece, block_cols_);
  x_.resize(piece);
  for (auto* array : {&amax_, &min_, &max_, &extreme_, &value_, &effective_, &divisor_, &zero_}) array->resize(blocks);
  stored_.resize(blocks);
  zero_code_.resize(blocks);
  sums_.resize(tile_rows_);
}

// Whole blocks of about kPieceCols columns; the whole row if its blocks are larger, or would break the lanes of the
// sums.
uint64_t TileEncoder::piece_cols() const {
  if (block_cols_ > kPieceCols || block_cols_ % 8 != 0) return in_.cols;
  return kPieceCols / block_cols_ * block_cols_;
}

bool TileEncoder::run(ErrorSums* row_errors) {
  const uint64_t piece = piece_cols();
  for (uint64_t row = 0; row < in_.rows; row += tile_rows_) {
    Tile tile{.row = row, .rows = std::min(tile_rows_, in_.rows - row)};
    std::ranges::fill(sums_, simd::RowSums{});
    for (uint64_t col = 0; col < in_.cols; col += piece) {
      tile.col = col;
      tile.cols = std::min(piece, in_.cols - col);
      tile.blocks = ceil_div(tile.cols, block_cols_);
      if (!collect_stats(tile)) return false;
      choose_scales(tile);
      if (options_.rule.mse || rule_.alternatives != nullptr) search(tile);
      store_scales(tile);
      encode_rows(tile, row_errors != nullptr);
    }
    if (row_errors == nullptr) continue;
    for (uint64_t i = 0; i < tile.rows; ++i) {
      row_errors[row + i] = {simd::sum_of_lanes(sums_[i].signal), simd::sum_of_lanes(sums_[i].noise), in_.cols};
    }
  }
  return true;
}

// A tile of one row is converted once and stays in x_.
const float* TileEncoder::load_row(const Tile& tile, uint64_t row) {
  if (tile.rows > 1 || !row_is_loaded_) {
    kernels_.load(in_.element, element_at(in_, tile.row + row, tile.col), tile.cols, x_.data());
    row_is_loaded_ = true;
  }
  return x_.data();
}

bool TileEncoder::collect_stats(const Tile& tile) {
  const auto blocks = static_cast<std::ptrdiff_t>(tile.blocks);
  const bool needs_range = rule_.needs != BlockStatsNeeded::kAmax;
  std::fill_n(amax_.begin(), blocks, 0.0f);
  if (needs_range) {
    std::fill_n(min_.begin(), blocks, 0.0f);
    std::fill_n(max_.begin(), blocks, 0.0f);
  }
  row_is_loaded_ = false;
  for (uint64_t row = 0; row < tile.rows; ++row) {
    const float* x = load_row(tile, row);
    kernels_.block_abs_max(x, tile.cols, block_cols_, amax_.data());
    if (needs_range) kernels_.block_min_max(x, tile.cols, block_cols_, min_.data(), max_.data());
  }
  uint32_t largest = 0;
  for (uint64_t b = 0; b < tile.blocks; ++b) largest = std::max(largest, float_bits(amax_[b]));
  if (largest >= kFloatInf) return false;
  if (rule_.needs == BlockStatsNeeded::kExtreme) find_extremes(tile);
  return true;
}

void TileEncoder::find_extremes(const Tile& tile) {
  NIBBLE_CHECK(tile.rows == 1);
  for (uint64_t b = 0; b < tile.blocks; ++b) {
    const float low = min_[b], high = max_[b];
    extreme_[b] = high > -low ? high : low;
    if (high != -low || high == 0) continue;
    // Both signs reach the maximum: the first one counts.
    const std::span<const float> block(x_.data() + b * block_cols_, x_.data() + tile.cols);
    extreme_[b] = *std::ranges::find_if(block, [&](float x) { return x == low || x == high; });
  }
}

BlockStats TileEncoder::stats_of(uint64_t block) const {
  BlockStats stats{.amax = amax_[block]};
  if (rule_.needs != BlockStatsNeeded::kAmax) {
    stats.min = min_[block];
    stats.max = max_[block];
    stats.extreme = extreme_[block];
  }
  return stats;
}

void TileEncoder::choose_scales(const Tile& tile) {
  const bool own_scales = recipe_ == nullptr || recipe_->block_scale == nullptr;
  if (own_scales && rule_.block_scales != nullptr) {
    rule_.block_scales(format_, amax_.data(), tile.blocks, tensor_scale_, stored_.data(), value_.data());
    // Clamps are the same for all blocks: those of any.
    const BlockScale any = rule_.block_scale(format_, stats_of(0), tensor_scale_);
    low_ = any.clamp_low;
    high_ = any.clamp_high;
  } else {
    choose_block_by_block(tile);
  }
  set_effective_scales(tile.blocks);
}

void TileEncoder::choose_block_by_block(const Tile& tile) {
  for (uint64_t b = 0; b < tile.blocks; ++b) {
    const BlockStats stats = stats_of(b);
    const bool own_scale = recipe_ == nullptr || recipe_->block_scale == nullptr;
    set_block(b, own_scale ? rule_.block_scale(format_, stats, tensor_scale_)
                           : recipe_->block_scale(format_, stats, tensor_scale_, in_.element));
  }
}

void TileEncoder::set_block(uint64_t block, const BlockScale& scale) {
  stored_[block] = scale.stored;
  value_[block] = scale.value;
  zero_code_[block] = scale.zero;
  low_ = scale.clamp_low;
  high_ = scale.clamp_high;
}

void TileEncoder::set_effective_scales(uint64_t blocks) {
  const bool multiply = tensor_scale_.level == SecondLevel::kMultiply;
  const bool divide = tensor_scale_.level == SecondLevel::kDivide;
  for (uint64_t b = 0; b < blocks; ++b) {
    effective_[b] = effective_scale(value_[b], multiply, divide, tensor_scale_.value);
  }
  if (format_.zero == ZeroPoint::kCode) {
    for (uint64_t b = 0; b < blocks; ++b) zero_[b] = static_cast<float>(int4_decode(zero_code_[b]));
  }
  if (recipe_ != nullptr && recipe_->divisor != nullptr) {
    for (uint64_t b = 0; b < blocks; ++b) divisor_[b] = recipe_->divisor(stats_of(b));
  }
}

int TileEncoder::candidates(uint64_t block, BlockScale* list) const {
  list[0] = BlockScale{stored_[block], value_[block], zero_code_[block], static_cast<int8_t>(low_),
                       static_cast<int8_t>(high_)};
  int count = 1;
  if (rule_.alternatives != nullptr) {
    count += rule_.alternatives(format_, stats_of(block), tensor_scale_, list + count);
  }
  if (options_.rule.mse) count += mse_candidates(format_, list[0], list + count);
  return count;
}

// All blocks try their i-th candidate together, so that the loops over elements stay long.
void TileEncoder::search(const Tile& tile) {
  constexpr int kMost = 1 + kMaxAlternatives + kMaxMseCandidates;
  std::vector<BlockScale> lists(tile.blocks * kMost);
  std::vector<int> counts(tile.blocks), best(tile.blocks);
  std::vector<double> least(tile.blocks), noise(tile.blocks);
  int most = 1;
  for (uint64_t b = 0; b < tile.blocks; ++b) {
    counts[b] = candidates(b, &lists[b * kMost]);
    most = std::max(most, counts[b]);
  }
  for (int i = 0; i < most; ++i) {
    for (uint64_t b = 0; b < tile.blocks; ++b)
      set_block(b, lists[b * kMost + static_cast<uint64_t>(i < counts[b] ? i : 0)]);
    set_effective_scales(tile.blocks);
    std::ranges::fill(noise, 0.0);
    add_noise(tile, noise.data());
    for (uint64_t b = 0; b < tile.blocks; ++b) {
      if (i > 0 && !(noise[b] < least[b])) continue;
      least[b] = noise[b];
      best[b] = i;
    }
  }
  for (uint64_t b = 0; b < tile.blocks; ++b) set_block(b, lists[b * kMost + static_cast<uint64_t>(best[b])]);
  set_effective_scales(tile.blocks);
}

void TileEncoder::add_noise(const Tile& tile, double* noise) {
  simd::EncodeJob piece = job(tile);
  for (uint64_t row = 0; row < tile.rows; ++row) {
    piece.x = load_row(tile, row);
    kernels_.block_noise(piece, noise);
  }
}

simd::EncodeJob TileEncoder::job(const Tile& tile) const {
  const bool other_divisor = recipe_ != nullptr && recipe_->divisor != nullptr;
  simd::EncodeJob job;
  job.element = format_.element;
  job.arithmetic = arithmetic_;
  job.cols = tile.cols;
  job.block_cols = block_cols_;
  job.divisor = other_divisor ? divisor_.data() : effective_.data();
  job.multiplier = effective_.data();
  job.zero = format_.zero == ZeroPoint::kCode ? zero_.data() : nullptr;
  job.low = low_;
  job.high = high_;
  return job;
}

void TileEncoder::encode_rows(const Tile& tile, bool with_sums) {
  simd::EncodeJob piece = job(tile);
  const uint64_t row_bytes = format_.code_row_bytes(in_.cols);
  for (uint64_t row = 0; row < tile.rows; ++row) {
    piece.x = load_row(tile, row);
    piece.codes = out_.codes + (tile.row + row) * row_bytes + tile.col * format_.code_bits() / 8;
    kernels_.encode(piece, with_sums ? &sums_[row] : nullptr);
  }
}

void TileEncoder::store_scales(const Tile& tile) {
  const uint64_t scale_row = format_.block_rows == 0 ? 0 : tile.row / format_.block_rows;
  const uint64_t first = scale_row * format_.scale_cols(in_.cols) + tile.col / block_cols_;
  const uint64_t size = format_.scale_bytes();
  // Little-endian: the low bytes of the pattern.
  for (uint64_t b = 0; b < tile.blocks; ++b) std::memcpy(out_.scales + (first + b) * size, &stored_[b], size);
  if (format_.zero == ZeroPoint::kCode) std::memcpy(out_.zeros + first, zero_code_.data(), tile.blocks);
}

}  // namespace nibble
