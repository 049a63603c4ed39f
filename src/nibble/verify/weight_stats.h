// What one pass over a checkpoint's bytes leaves behind for the rules: a WeightStats per weight, and the SHA-256 of
// files that were asked for.
//
//   ScanResult scan = scan_weights(checkpoint, model.table, {.threads = 8});
//   scan.weights[i].code_histogram ...
//
// Sums of integers are exact and sums of doubles are added in a fixed order: results depend neither on the number of
// threads nor on their timing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nibble/base/finding.h"
#include "nibble/checkpoint/weight_table.h"
#include "nibble/numerics/encoded.h"
#include "nibble/verify/extreme_stats.h"
#include "nibble/verify/hole_stats.h"
#include "nibble/verify/zero_classes.h"

namespace nibble {

struct ScaleStats {
  uint64_t count = 0, zeros = 0, negatives = 0, nans = 0, infinities = 0;
  uint64_t powers_of_two = 0;
  double min = 0, max = 0;            // over `good` scales: finite and above zero
  uint64_t good = 0;                  // how many
  int64_t log2_fixed = 0;             // sum of their log2 in units of 2^-23, each within 0.09 of the exact logarithm
  std::optional<uint64_t> first_bad;  // flat index of the first NaN, infinity or negative
  // Logarithmic mean of the good scales as a factor (1 if there are none).
  double geometric_mean() const;
  void merge(const ScaleStats& other);
};

struct WeightStats {
  bool scanned = false;   // something was read
  bool sampled = false;   // but not all of it (quick)
  bool failed = false;    // a read failed: see ScanResult::findings
  uint64_t elements = 0;  // that were looked at
  uint64_t zeros = 0;     // elements that decode to zero because their code does

  // ---- quantized weights
  // Codes in canonical form (format.h) by bit pattern: 16 entries for 4-bit elements, 256 for 8-bit ones.
  std::vector<uint64_t> code_histogram;
  // Largest magnitude code of each block (code_stats.h): 16 or 129 entries.
  std::vector<uint64_t> block_max_histogram;
  uint64_t blocks = 0;
  uint64_t dead_blocks = 0;            // blocks with scale zero that hold a code that is not
  uint64_t negative_short_blocks = 0;  // blocks with a scale below zero and no code of the one largest magnitude
  ScaleStats scales;
  ScaleStats input_scales;  // static activation scales
  SecondLevel level = SecondLevel::kNone;
  std::vector<float> second;  // second-level scale as stored, one per slice (one only if they are all equal)
  uint64_t zero_points = 0, zero_point_sum = 0;
  uint8_t zero_point_min = 255, zero_point_max = 0;
  // Over blocks with a zero point of their own: sum of codes minus size times zero point, and its square.
  uint64_t shifted_blocks = 0;
  int64_t shift_sum = 0;
  uint64_t shift_squares = 0;
  uint64_t nonzero_mins = 0;
  ZeroClasses zero_classes;  // of 4-bit elements
  ExtremeStats extremes;
  // Slices in which all code bytes are one, although their blocks have different scales.
  std::optional<FlatCodes> flat;  // of the rows of one piece
  uint64_t flat_slices = 0;
  std::optional<uint64_t> first_flat_slice;
  std::byte flat_byte{};

  // ---- dense weights
  uint64_t nans = 0, infinities = 0;
  std::optional<uint64_t> first_bad;  // element index of the first NaN or infinity
  double amax = 0, sum_squares = 0;

  HoleStats holes;

  // Slices of a stack in which every element that was looked at is zero.
  uint64_t zero_slices = 0;
  std::optional<uint64_t> first_zero_slice;

  // Root mean square of a dense weight; 0 if nothing was read.
  double dense_rms() const;
};

struct ScanOptions {
  // Headers, all scales, and 64 KiB of each of at most 2,000 quantized and 2,000 dense weights.
  bool quick = false;
  int threads = 1;
  bool quiet = false;
  std::vector<bool> hash_files;  // by Checkpoint::files(); empty: none
};

struct ScanResult {
  std::vector<WeightStats> weights;  // one per weight of the table
  std::vector<std::string> sha256;   // one per file, "" where not asked for
  uint64_t bytes = 0;                // of weights that were read
  Findings findings;                 // `unreadable`: what could not be read
};

// Reads every stored byte once (twice where files are hashed, the second time beside the first) unless `quick`. Memory:
// threads x 32 MiB beside the result; where rows of a matrix cannot be read apart, threads x one such matrix. Never
// throws for what is in the files: a failed read is a finding.
ScanResult scan_weights(const Checkpoint& checkpoint, const WeightTable& table, const ScanOptions& options);

}  // namespace nibble
