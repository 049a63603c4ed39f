// Matrices in memory: dense input as it lies in a file, and the canonical arrays of an encoded one (format.h).
// Views do not own; a view's arrays may be rows cut out of a larger matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nibble/base/buffer.h"
#include "nibble/numerics/format.h"

namespace nibble {

// (N, K) of float32, bfloat16, float16 or float64 elements; rows `row_stride` bytes apart, elements unaligned.
struct DenseView {
  const std::byte* data = nullptr;
  Element element = Element::kF32;
  uint64_t rows = 0, cols = 0, row_stride = 0;
};

// How the second-level scale enters (FORMATS.md §2.2, trap 2). It is kept as the file has it, since 1/x rounds.
enum class SecondLevel : uint8_t {
  kNone,      // value = q * s
  kMultiply,  // ModelOpt: value = q * s * second; the order of the two products is stated in decode.h
  kDivide,    // compressed-tensors: value = q * (s / second)
};

struct TensorScale {
  SecondLevel level = SecondLevel::kNone;
  float value = 1;  // second-level scale; for formats with one scale per tensor: that scale
  friend bool operator==(const TensorScale&, const TensorScale&) = default;
};

template <typename Byte, typename Zero, typename Min>
struct BasicEncodedView {
  const Format* format = nullptr;
  uint64_t rows = 0, cols = 0;
  // Rows before the first one that share its scale row: (index of row 0 in the whole matrix) % block_rows.
  uint64_t row_phase = 0;
  Byte* codes = nullptr;   // rows code_row_bytes(cols) apart
  Byte* scales = nullptr;  // rows scale_cols(cols) * scale_bytes() apart
  Zero* zeros = nullptr;
  Min* mins = nullptr;
  TensorScale tensor_scale;
  const uint32_t* column_group = nullptr;  // (K): scale column of each column, or null for k / block_cols
};
using EncodedView = BasicEncodedView<const std::byte, const uint8_t, const float>;
using MutableEncodedView = BasicEncodedView<std::byte, uint8_t, float>;

// An owning encoded matrix (or a dense one: then only `codes` is used).
struct EncodedMatrix {
  Format format;
  uint64_t rows = 0, cols = 0, row_phase = 0;
  UnfilledBytes codes;
  std::vector<std::byte> scales;
  std::vector<uint8_t> zeros;
  std::vector<float> mins;
  TensorScale tensor_scale;
  std::vector<uint32_t> column_group;

  // Zero-filled arrays of the right sizes.
  static EncodedMatrix make(const Format& format, uint64_t rows, uint64_t cols, uint64_t row_phase = 0);
  // The same, but for codes whose memory the caller overwrites: filling it first costs as much as a tenth of encoding.
  static EncodedMatrix make_unfilled(const Format& format, uint64_t rows, uint64_t cols, uint64_t row_phase = 0);
  EncodedView view() const;
  MutableEncodedView mutable_view();
  DenseView dense_view() const;  // of a dense format
  uint64_t bytes() const;
};

}  // namespace nibble
