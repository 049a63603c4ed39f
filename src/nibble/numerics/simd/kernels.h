// The inner loops of numerics, one table of functions for each instruction set. All tables give the same bits: the
// scalar one is the reference, written with the codecs alone; the others are tested against it.
//
// Columns are counted from the start of a row's piece; pieces start on a multiple of 8 columns and of the block, so
// that sums and nibbles do not depend on how a row is cut.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nibble/base/cpu_features.h"
#include "nibble/numerics/element_codec.h"
#include "nibble/numerics/format.h"

namespace nibble::simd {

inline constexpr uint64_t kSumStep = 32;

// Sums of squares of a row in eight float64 lanes. Columns are taken in steps of 32 from the row's start, missing ones
// as 0; in each step lane j receives one number, four squares of float32 added in float32:
//   (x[j]^2 + x[j+16]^2) + (x[j+8]^2 + x[j+24]^2)
// That costs a third of squaring in float64, and is good to 2^-22 of each such number. It needs magnitudes whose
// squares float32 can hold: pieces beyond kWideBelow and kWideAbove are summed element by element in float64
// (EncodeJob::wide).
struct RowSums {
  double signal[8] = {};
  double noise[8] = {};
};
inline constexpr float kWideBelow = 0x1p-40f, kWideAbove = 0x1p60f;

// The lanes in one fixed order.
inline double sum_of_lanes(const double* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// A piece of a row to encode. Column k belongs to block k / block_cols of the arrays.
struct EncodeJob {
  Element element = Element::kE2M1;
  Arithmetic arithmetic;
  const float* x = nullptr;
  const std::byte* bf16 = nullptr;  // or, in encode(), the columns as they are stored: see can_stay_bf16()
  uint64_t cols = 0;
  uint64_t block_cols = 0;
  const float* divisor = nullptr;     // one per block, as in BlockCoding
  const float* multiplier = nullptr;  // one per block; may be the same array
  const float* reciprocal = nullptr;  // 1 / divisor rounded to nearest, or null where division must do
  // 1 / divisor - reciprocal, rounded; only where `reciprocal` is there and x comes from BF16 (8 significant bits).
  const float* reciprocal_rest = nullptr;
  bool powers_of_two = false;   // all divisors are: x * reciprocal is the quotient
  const float* zero = nullptr;  // one per block, or null for none
  float low = 0, high = 0;
  bool wide = false;  // sums in float64 from the start
  std::byte* codes = nullptr;
};

// Whether encode() takes BF16 columns without their conversion to float32.
inline bool can_stay_bf16(const EncodeJob& job) {
  return (job.powers_of_two || job.reciprocal_rest != nullptr) && job.arithmetic == Arithmetic{} && job.zero == nullptr;
}

// A piece of a row to decode, likewise.
struct DecodeJob {
  Element element = Element::kE2M1;
  const std::byte* codes = nullptr;
  uint64_t cols = 0;
  uint64_t block_cols = 0;
  const float* multiplier = nullptr;
  const float* zero = nullptr;  // kInt4, kInt8: signed zero point; null for none
  const float* min = nullptr;   // kUint4: value = code * multiplier + min
  float* out = nullptr;
};

struct Kernels {
  Isa isa;
  // Dense elements to float32: exact, but for float64, which is rounded to nearest.
  void (*load)(Element element, const std::byte* in, uint64_t count, float* out);
  // float32 to dense elements, round to nearest even.
  void (*store)(Element element, const float* in, uint64_t count, std::byte* out);
  // Pattern of the largest magnitude of dense elements as float32; from 0x7f800000 on there is an infinity or a NaN.
  uint32_t (*abs_max)(Element element, const std::byte* in, uint64_t count);
  // Per block: the larger of what stands in the array and the largest magnitude, compared as patterns like abs_max, so
  // that infinities and NaNs win; or the minimum and maximum of x and 0, where NaNs may be lost.
  void (*block_abs_max)(const float* x, uint64_t cols, uint64_t block_cols, float* amax);
  void (*dense_block_abs_max)(Element element, const std::byte* in, uint64_t cols, uint64_t block_cols, float* amax);
  void (*block_min_max)(const float* x, uint64_t cols, uint64_t block_cols, float* min, float* max);
  // `sums` may be null.
  void (*encode)(const EncodeJob& job, RowSums* sums);
  // Adds to noise[b] the sum of (x - decoded)^2 over block b, in lanes and steps as above, but from the start of the
  // block; writes no codes.
  void (*block_noise)(const EncodeJob& job, double* noise);
  void (*decode)(const DecodeJob& job);
  // out[i]: the larger of the table's entries for the two nibbles of codes[i]. The table has 16.
  void (*nibble_maxima)(const uint8_t* codes, uint64_t count, const uint8_t* table, uint8_t* out);
  // out[i]: the larger of in[2 i] and in[2 i + 1]. The ranges may not overlap.
  void (*pair_maxima)(const uint8_t* in, uint64_t count, uint8_t* out);
};

const Kernels& scalar_kernels();
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
// Those of best_isa(), asked at every call so that NIBBLE_ISA can change between tests.
const Kernels& kernels();

}  // namespace nibble::simd
