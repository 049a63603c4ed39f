// Activations as kernels read them: (T, K) float32 rows padded to the layout's columns, or INT8 codes in groups.
//
// INT8 (W4A8, W8A8 of integers): each token's columns in groups of layout.run_cols(); s = max |x| / 127, code =
// RNE(x / s) (numerics/activations.h, without a floor). A group depends on itself alone. Beside codes and scales stands
// what makes weights unsigned for the dot products: weights are read as q + offset, and `corrections` holds
// -offset * (sum of the group's codes), from which a group's sum starts.
//
//   layout   weights as read       offset                     scale of the product
//   E2M1     2 q + 12, 0..24       12                         s / 2: exact, unless s is subnormal
//   INT4     q + 8, 0..15          8; with zero points or minima 0   s
//   INT8     q + 128, 0..255       128                        s
//
// Codes lie in the order in which the weights' lanes hold their columns: for 4-bit codes each 8 columns as 0 2 4 6 1 3
// 5 7, else as they are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nibble/base/buffer.h"
#include "nibble/base/thread_pool.h"
#include "nibble/kernels/weight_layout.h"

namespace nibble {

// Memory for activations that is kept from call to call. Not thread-safe.
class ActivationBuffer {
 public:
  // `count` elements of any content, aligned to 64 bytes.
  template <typename T>
  T* get(uint64_t count) {
    return reinterpret_cast<T*>(aligned(count * sizeof(T)));
  }

 private:
  std::byte* aligned(uint64_t bytes);
  Buffer buffer_;
};

// (T, padded K) float32; columns beyond K are 0.
struct F32Activations {
  const float* values = nullptr;
  uint64_t tokens = 0, stride = 0;  // in floats
  const float* run_sums = nullptr;  // (T, runs): even columns' sum plus odd ones'; null without minima
  uint64_t runs = 0;
  const float* row(uint64_t token) const { return values + token * stride; }
};

// What becomes of float32 activations before they are multiplied as float32.
enum class ActivationRounding : uint8_t {
  kNone,
  kBF16,  // each to BF16, nearest even
  kE4M3,  // each token's columns in groups of 128: scale max |x| / 448, codes RNE(x / scale), multiplied back
};

struct Int8Activations {
  const int8_t* codes = nullptr;         // (T, padded K), permuted
  const float* scales = nullptr;         // (T, groups): of the product, as above
  const int32_t* corrections = nullptr;  // (T, groups)
  const int32_t* sums = nullptr;         // (T, groups): of the codes; null without zero points or minima
  uint64_t tokens = 0, groups = 0, padded_k = 0;
};

struct BF16Activations {
  const uint16_t* values = nullptr;  // (T, padded K), nearest even; columns beyond K are 0
  uint64_t tokens = 0, padded_k = 0;
};

class Int8Quantizer {
 public:
  // x (tokens, K) rows `stride` floats apart. The result is valid until the next call; the same for every way of
  // cutting the tokens into calls.
  // `pool`: on its threads; null: on the caller's.
  Int8Activations run(const WeightLayout& layout, const float* x, uint64_t tokens, uint64_t stride,
                      ThreadPool* pool = nullptr);

 private:
  ActivationBuffer codes_, scales_, corrections_, sums_;
};

class BF16Rounder {
 public:
  // As Int8Quantizer::run().
  BF16Activations run(const WeightLayout& layout, const float* x, uint64_t tokens, uint64_t stride);

 private:
  ActivationBuffer values_;
};

class F32Padder {
 public:
  // x itself where its rows are as long as the layout's and are not rounded, else a padded copy. Valid until the next
  // call; the same for every way of cutting the tokens into calls.
  F32Activations run(const WeightLayout& layout, const float* x, uint64_t tokens, uint64_t stride,
                     ActivationRounding rounding = ActivationRounding::kNone);

 private:
  ActivationBuffer values_, sums_;
};

}  // namespace nibble
