#include "nibble/numerics/tile_encoder.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"
#include "nibble/numerics/effective_scale.h"
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/mse.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {
namespace {

// 8 KiB of float32: leaves the first-level cache room for input, codes and the arrays of the blocks. A tile of many
// rows is read twice and should stay in the second level.
constexpr uint64_t kPieceCols = 2048;

// Little-endian: the low bytes of the patterns.
template <typename Stored>
void store_narrow(const uint32_t* patterns, uint64_t count, std::byte* out) {
  for (uint64_t i = 0; i < count; ++i) {
    const auto stored = static_cast<Stored>(patterns[i]);
    std::memcpy(out + i * sizeof(Stored), &stored, sizeof(Stored));
  }
}

// Positive and far enough from the ends of float32 that no remainder of a division is lost (EncodeJob::reciprocal).
// Patterns instead of numbers, so that compilers make a vector loop of it.
bool are_safe(const float* divisors, uint64_t count) {
  constexpr uint32_t kLeast = float_bits(0x1p-60f), kMost = float_bits(0x1p60f);
  uint32_t outside = 0;
  for (uint64_t b = 0; b < count; ++b) outside |= float_bits(divisors[b]) - kLeast > kMost - kLeast ? 1u : 0u;
  return outside == 0;
}

// 1 / divisor in two parts. The float64 reciprocal rounds to what float32 division gives: 1 / d is never within 2^-49
// of the middle between two float32 numbers.
void invert(const float* divisors, uint64_t count, float* high, float* rest) {
  for (uint64_t b = 0; b < count; ++b) {
    const double inverse = 1.0 / static_cast<double>(divisors[b]);
    high[b] = static_cast<float>(inverse);
    rest[b] = static_cast<float>(inverse - static_cast<double>(high[b]));
  }
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
  for (auto* array :
       {&amax_, &min_, &max_, &extreme_, &value_, &effective_, &divisor_, &reciprocal_, &reciprocal_rest_, &zero_})
    array->resize(blocks);
  stored_.resize(blocks);
  zero_code_.resize(blocks);
  sums_.resize(tile_rows_);
  if (most_candidates() > 1) {
    candidates_.resize(blocks * static_cast<uint64_t>(most_candidates()));
    candidate_count_.resize(blocks);
    best_.resize(blocks);
    least_noise_.resize(blocks);
    noise_.resize(blocks);
  }
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
      if (most_candidates() > 1) search(tile);
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

const std::byte* TileEncoder::stored_row(const Tile& tile, uint64_t row) const {
  return in_.data + (tile.row + row) * in_.row_stride + tile.col * (element_bits(in_.element) / 8);
}

// A tile of one row is converted once at most and stays in x_.
const float* TileEncoder::load_row(const Tile& tile, uint64_t row) {
  if (tile.rows > 1 || !row_is_loaded_) {
    kernels_.load(in_.element, stored_row(tile, row), tile.cols, x_.data());
    row_is_loaded_ = true;
  }
  return x_.data();
}

void TileEncoder::add_stats(const Tile& tile, uint64_t row, bool needs_range) {
  if (!needs_range && (tile.rows > 1 || in_.element == Element::kBF16)) {
    return kernels_.dense_block_abs_max(in_.element, stored_row(tile, row), tile.cols, block_cols_, amax_.data());
  }
  const float* x = load_row(tile, row);
  kernels_.block_abs_max(x, tile.cols, block_cols_, amax_.data());
  if (needs_range) kernels_.block_min_max(x, tile.cols, block_cols_, min_.data(), max_.data());
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
  for (uint64_t row = 0; row < tile.rows; ++row) add_stats(tile, row, needs_range);
  uint32_t largest = 0;
  for (uint64_t b = 0; b < tile.blocks; ++b) largest = std::max(largest, float_bits(amax_[b]));
  if (largest >= kFloatInf) return false;
  wide_ = largest != 0 && (largest < float_bits(simd::kWideBelow) || largest > float_bits(simd::kWideAbove));
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

BlockStatsArrays TileEncoder::stats_arrays() const {
  BlockStatsArrays arrays{.amax = amax_.data()};
  if (rule_.needs != BlockStatsNeeded::kAmax) {
    arrays.min = min_.data();
    arrays.max = max_.data();
    arrays.extreme = extreme_.data();
  }
  return arrays;
}

void TileEncoder::choose_scales(const Tile& tile) {
  const BlockScaleArrays out{stored_.data(), value_.data(),
                             format_.zero == ZeroPoint::kCode ? zero_code_.data() : nullptr};
  if (recipe_ != nullptr && recipe_->block_scales != nullptr) {
    recipe_->block_scales(format_, stats_arrays(), tile.blocks, tensor_scale_, in_.element, out);
  } else {
    rule_.block_scales(format_, stats_arrays(), tile.blocks, tensor_scale_, out);
  }
  set_effective_scales(tile.blocks);
}

void TileEncoder::set_block(uint64_t block, const BlockScale& scale) {
  stored_[block] = scale.stored;
  value_[block] = scale.value;
  zero_code_[block] = scale.zero;
}

void TileEncoder::set_effective_scales(uint64_t blocks) {
  effective_scales(value_.data(), blocks, tensor_scale_, effective_.data());
  if (format_.zero == ZeroPoint::kCode) {
    for (uint64_t b = 0; b < blocks; ++b) zero_[b] = static_cast<float>(int4_decode(zero_code_[b]));
  }
  if (recipe_ != nullptr && recipe_->divisor != nullptr) {
    for (uint64_t b = 0; b < blocks; ++b) divisor_[b] = recipe_->divisor(stats_of(b));
  }
  invert(divisors(), blocks, reciprocal_.data(), reciprocal_rest_.data());
  safe_divisors_ = are_safe(divisors(), blocks);
}

const float* TileEncoder::divisors() const {
  return recipe_ != nullptr && recipe_->divisor != nullptr ? divisor_.data() : effective_.data();
}

// One scale for the whole matrix is searched by whoever sees all of it.
bool TileEncoder::searches_blocks() const { return options_.rule.mse && !has_tensor_scale_only(format_); }

int TileEncoder::most_candidates() const {
  return 1 + (rule_.alternatives != nullptr ? kMaxAlternatives : 0) + (searches_blocks() ? kMaxMseCandidates : 0);
}

int TileEncoder::list_candidates(uint64_t block, BlockScale* list) const {
  list[0] = BlockScale{stored_[block], value_[block], zero_code_[block], rule_.clamp_low, rule_.clamp_high};
  int count = 1;
  if (rule_.alternatives != nullptr) {
    count += rule_.alternatives(format_, stats_of(block), tensor_scale_, list + count);
  }
  if (searches_blocks()) count += mse_candidates(format_, rule_, list[0], list + count);
  return count;
}

// All blocks try their i-th candidate together, so that the loops over elements stay long.
void TileEncoder::search(const Tile& tile) {
  const auto stride = static_cast<uint64_t>(most_candidates());
  int most = 1;
  for (uint64_t b = 0; b < tile.blocks; ++b) {
    candidate_count_[b] = list_candidates(b, &candidates_[b * stride]);
    most = std::max(most, candidate_count_[b]);
  }
  for (int i = 0; i < most; ++i) {
    for (uint64_t b = 0; b < tile.blocks; ++b) {
      const int of_block = i < candidate_count_[b] ? i : 0;
      set_block(b, candidates_[b * stride + static_cast<uint64_t>(of_block)]);
    }
    set_effective_scales(tile.blocks);
    std::fill_n(noise_.begin(), tile.blocks, 0.0);
    add_noise(tile, noise_.data());
    for (uint64_t b = 0; b < tile.blocks; ++b) {
      if (i > 0 && !(noise_[b] < least_noise_[b])) continue;
      least_noise_[b] = noise_[b];
      best_[b] = i;
    }
  }
  for (uint64_t b = 0; b < tile.blocks; ++b) set_block(b, candidates_[b * stride + static_cast<uint64_t>(best_[b])]);
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
  simd::EncodeJob job;
  job.element = format_.element;
  job.arithmetic = arithmetic_;
  job.cols = tile.cols;
  job.block_cols = block_cols_;
  job.divisor = divisors();
  job.multiplier = effective_.data();
  job.powers_of_two = format_.scale == ScaleType::kE8M0 && job.divisor == effective_.data();
  if (job.powers_of_two || safe_divisors_) job.reciprocal = reciprocal_.data();
  if (safe_divisors_ && in_.element == Element::kBF16) job.reciprocal_rest = reciprocal_rest_.data();
  job.zero = format_.zero == ZeroPoint::kCode ? zero_.data() : nullptr;
  job.low = rule_.clamp_low;
  job.high = rule_.clamp_high;
  job.wide = wide_;
  return job;
}

void TileEncoder::encode_rows(const Tile& tile, bool with_sums) {
  simd::EncodeJob piece = job(tile);
  const uint64_t row_bytes = format_.code_row_bytes(in_.cols);
  const bool stays_bf16 = in_.element == Element::kBF16 && can_stay_bf16(piece);
  for (uint64_t row = 0; row < tile.rows; ++row) {
    if (stays_bf16) {
      piece.bf16 = stored_row(tile, row);
    } else {
      piece.x = load_row(tile, row);
    }
    piece.codes = out_.codes + (tile.row + row) * row_bytes + tile.col * format_.code_bits() / 8;
    kernels_.encode(piece, with_sums ? &sums_[row] : nullptr);
  }
}

void TileEncoder::store_scales(const Tile& tile) {
  const uint64_t scale_row = format_.block_rows == 0 ? 0 : tile.row / format_.block_rows;
  const uint64_t first = scale_row * format_.scale_cols(in_.cols) + tile.col / block_cols_;
  std::byte* out = out_.scales + first * format_.scale_bytes();
  switch (format_.scale_bytes()) {
    case 1: store_narrow<uint8_t>(stored_.data(), tile.blocks, out); break;
    case 2: store_narrow<uint16_t>(stored_.data(), tile.blocks, out); break;
    default: store_narrow<uint32_t>(stored_.data(), tile.blocks, out); break;
  }
  if (format_.zero == ZeroPoint::kCode) std::memcpy(out_.zeros + first, zero_code_.data(), tile.blocks);
}

}  // namespace nibble
