// What one pass over a weight's stored bytes leaves behind for the rules. Sampled weights (quick) have `sampled` set.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "nibble/checkpoint/weight_table.h"

namespace nibble {

struct ScaleStats {
  uint64_t count = 0, zeros = 0, negatives = 0, nans = 0, infinities = 0;
  uint64_t powers_of_two = 0;
  double min = 0, max = 0, log2_mean = 0;  // over finite, non-zero scales
  std::optional<uint64_t> first_bad;       // flat index of the first NaN, infinity or negative
};

struct WeightStats {
  bool scanned = false;
  bool sampled = false;
  // Codes: 4-bit formats use entries 0..15, 8-bit ones all (bit patterns).
  std::array<uint64_t, 256> code_histogram{};
  uint64_t blocks = 0;
  std::array<uint64_t, 256>
      block_max_histogram{};  // largest magnitude code of each block (sign bit cleared, |q| for int4)
  ScaleStats scales;
  // Dense weights.
  uint64_t elements = 0, zeros = 0, nans = 0, infinities = 0;
  std::optional<uint64_t> first_bad;
  double amax = 0, sum_squares = 0;
  // Mean square of each column of the decoded weight (K entries) over the rows that were sampled; empty if not asked
  // for.
  std::vector<double> column_mean_square;
};

// One entry per weight of the table. Reads every stored byte once unless `quick`; memory bounded by threads x 32 MiB.
std::vector<WeightStats> scan_weights(const Checkpoint& checkpoint, const WeightTable& table, bool quick, int threads,
                                      bool quiet);

}  // namespace nibble
