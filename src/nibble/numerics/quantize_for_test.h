// For the tests of numerics: a dense matrix in memory, and quantizing it in one call.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nibble/base/check.h"
#include "nibble/base/rng.h"
#include "nibble/numerics/codec/bf16.h"
#include "nibble/numerics/codec/f16.h"
#include "nibble/numerics/codec/int4.h"
#include "nibble/numerics/decode.h"
#include "nibble/numerics/element_codec.h"
#include "nibble/numerics/quantizer.h"

namespace nibble {

struct DenseMatrix {
  Element element = Element::kF32;
  uint64_t rows = 0, cols = 0;
  std::vector<std::byte> bytes;

  DenseView view() const { return {bytes.data(), element, rows, cols, cols * (element_bits(element) / 8)}; }
};

// The values must be exact in `element` unless rounding them is meant.
inline DenseMatrix dense_matrix(const std::vector<float>& values, uint64_t rows, uint64_t cols,
                                Element element = Element::kBF16) {
  NIBBLE_CHECK(values.size() == rows * cols);
  DenseMatrix matrix{element, rows, cols, std::vector<std::byte>(values.size() * element_bits(element) / 8)};
  const DenseView from{reinterpret_cast<const std::byte*>(values.data()), Element::kF32, rows, cols, cols * 4};
  convert(from, element, matrix.bytes.data());
  return matrix;
}

// Normal weights of standard deviation 0.05.
inline DenseMatrix random_matrix(uint64_t seed, uint64_t rows, uint64_t cols, Element element = Element::kBF16) {
  std::vector<float> values(rows * cols);
  for (uint64_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(0.05 * random_normal(seed, i));
  return dense_matrix(values, rows, cols, element);
}

struct Quantized {
  EncodedMatrix matrix;
  std::vector<ErrorSums> errors;
  ErrorSums total() const {
    ErrorSums sum;
    for (const ErrorSums& row : errors) sum.add(row);
    return sum;
  }
  std::vector<float> values() const {
    std::vector<float> out(matrix.rows * matrix.cols);
    decode(matrix, out);
    return out;
  }
};

inline QuantizeOptions options_for(const Format& format, std::string_view rule, BitExact who = BitExact::kNone) {
  return {.format = format, .rule = rule.empty() ? default_rule(format) : parse_rule(rule, format), .bit_exact = who};
}

inline Quantized quantize(const DenseView& rows, const Quantizer& quantizer, const TensorScale& scale) {
  Quantized result;
  result.matrix = EncodedMatrix::make(quantizer.options().format, rows.rows, rows.cols);
  result.matrix.tensor_scale = scale;
  result.errors.resize(rows.rows);
  const auto bad = quantizer.encode(rows, scale, result.matrix.mutable_view(), result.errors.data());
  EXPECT_FALSE(bad.has_value());
  return result;
}

inline Quantized quantize(const DenseView& rows, const QuantizeOptions& options) {
  const Quantizer quantizer(options);
  if (!quantizer.needs_amax()) return quantize(rows, quantizer, TensorScale{});
  std::optional<Quantized> best;
  for (const TensorScale& scale :
       quantizer.tensor_scale_candidates(quantizer.tensor_scale(abs_max(rows).amax, rows.element))) {
    Quantized one = quantize(rows, quantizer, scale);
    if (!best || one.total().noise < best->total().noise) best = std::move(one);
  }
  return *best;
}

inline Quantized quantize(const DenseMatrix& rows, const Format& format, std::string_view rule = "",
                          BitExact who = BitExact::kNone) {
  return quantize(rows.view(), options_for(format, rule, who));
}

inline uint8_t code_of(const EncodedMatrix& matrix, uint64_t row, uint64_t col) {
  const std::byte* codes = matrix.codes.data() + row * matrix.format.code_row_bytes(matrix.cols);
  if (matrix.format.code_bits() == 8) return static_cast<uint8_t>(codes[col]);
  return unpack_nibble(static_cast<uint8_t>(codes[col / 2]), col % 2 != 0);
}

// Codes as golden data has them, one a column; `minus_zero` stands for what -0 is replaced by.
inline std::vector<int> codes_of_row(const EncodedMatrix& matrix, uint64_t row) {
  std::vector<int> codes;
  codes.reserve(matrix.cols);
  for (uint64_t col = 0; col < matrix.cols; ++col) codes.push_back(code_of(matrix, row, col));
  return codes;
}

// 4-bit codes with -0 replaced by 0: all that distinguishes numerically equal encodings.
inline std::vector<std::byte> canonical_fp4(std::vector<std::byte> packed) {
  for (std::byte& pair : packed) {
    if ((pair & std::byte{0x0f}) == std::byte{0x08}) pair &= std::byte{0xf0};
    if ((pair & std::byte{0xf0}) == std::byte{0x80}) pair &= std::byte{0x0f};
  }
  return packed;
}

}  // namespace nibble
