// The quantizer's inner machine: one tile at a time, a tile being the rows that share a row of scales by as many
// columns as stay in the first-level cache. For each tile: statistics of its blocks, their scales (with a search if the
// rule asks for one), then codes and error sums.
#pragma once

#include <optional>
#include <vector>

#include "nibble/numerics/bit_exact.h"
#include "nibble/numerics/quantizer.h"
#include "nibble/numerics/simd/kernels.h"

namespace nibble {

class TileEncoder {
 public:
  // `out` belongs to a format with scales. `recipe` may be null.
  TileEncoder(const QuantizeOptions& options, const BitExactRecipe* recipe, const DenseView& in,
              const TensorScale& tensor_scale, const MutableEncodedView& out);

  // False if some value is NaN or infinite. `row_errors` may be null.
  bool run(ErrorSums* row_errors);

 private:
  struct Tile {
    uint64_t row = 0, rows = 0;
    uint64_t col = 0, cols = 0;
    uint64_t blocks = 0;
  };

  uint64_t piece_cols() const;
  const std::byte* stored_row(const Tile& tile, uint64_t row) const;
  const float* load_row(const Tile& tile, uint64_t row);
  void add_stats(const Tile& tile, uint64_t row, bool needs_range);
  bool collect_stats(const Tile& tile);
  void find_extremes(const Tile& tile);
  BlockStats stats_of(uint64_t block) const;
  BlockStatsArrays stats_arrays() const;
  void choose_scales(const Tile& tile);
  void set_block(uint64_t block, const BlockScale& scale);
  void set_effective_scales(uint64_t blocks);
  const float* divisors() const;
  bool searches_blocks() const;
  int most_candidates() const;
  int list_candidates(uint64_t block, BlockScale* list) const;
  void search(const Tile& tile);
  void add_noise(const Tile& tile, double* noise);
  simd::EncodeJob job(const Tile& tile) const;
  void encode_rows(const Tile& tile, bool with_sums);
  void store_scales(const Tile& tile);

  const QuantizeOptions& options_;
  const Format& format_;
  const ScaleRule& rule_;
  const BitExactRecipe* recipe_;
  const DenseView& in_;
  const TensorScale& tensor_scale_;
  const MutableEncodedView& out_;
  const simd::Kernels& kernels_;
  Arithmetic arithmetic_;
  uint64_t block_cols_;  // of this matrix: all columns if the format says 0
  uint64_t tile_rows_;   // rows that share scales, 1 if all do
  bool row_is_loaded_ = false;

  // Of one piece of a row.
  std::vector<float> x_;
  // Of the blocks of one tile.
  std::vector<uint32_t> stored_;
  std::vector<float> amax_, min_, max_, extreme_, value_, effective_, divisor_, reciprocal_, reciprocal_rest_, zero_;
  std::vector<uint8_t> zero_code_;
  bool safe_divisors_ = false;
  bool wide_ = false;  // magnitudes whose squares do not fit float32
  // Of a search: the i-th candidate of block b is candidates_[b * most candidates + i].
  std::vector<BlockScale> candidates_;
  std::vector<int> candidate_count_, best_;
  std::vector<double> least_noise_, noise_;
  // Of the rows of one tile.
  std::vector<simd::RowSums> sums_;
};

}  // namespace nibble
