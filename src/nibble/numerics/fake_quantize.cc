#include "nibble/numerics/fake_quantize.h"

#include <algorithm>
#include <vector>

#include "nibble/base/check.h"
#include "nibble/numerics/decode.h"

namespace nibble {
namespace {

// Elements encoded and decoded at a time: 64 KiB of float32, half a second-level cache of the smallest processors.
constexpr uint64_t kChunkElements = 1 << 14;

DenseView cut(const DenseView& rows, uint64_t first, uint64_t count) {
  return {rows.data + first * rows.row_stride, rows.element, count, rows.cols, rows.row_stride};
}

}  // namespace

uint64_t FakeQuantizer::cut_rows() const { return std::max<uint64_t>(quantizer_.options().format.block_rows, 1); }

std::optional<BadValue> FakeQuantizer::run(const DenseView& rows, const TensorScale& tensor_scale, float* out,
                                           uint64_t out_stride) const {
  if (rows.rows == 0 || rows.cols == 0) return std::nullopt;
  const uint64_t step = std::max(cut_rows(), kChunkElements / rows.cols / cut_rows() * cut_rows());
  EncodedMatrix packed =
      EncodedMatrix::make_unfilled(quantizer_.options().format, std::min(step, rows.rows), rows.cols);
  packed.tensor_scale = tensor_scale;
  for (uint64_t row = 0; row < rows.rows; row += step) {
    packed.rows = std::min(step, rows.rows - row);
    auto bad = quantizer_.encode(cut(rows, row, packed.rows), tensor_scale, packed.mutable_view(), nullptr);
    if (bad) {
      bad->row += row;
      return bad;
    }
    decode(packed.view(), out + row * out_stride, out_stride);
  }
  return std::nullopt;
}

// Rows are added one by one, as `quantize` adds them: the sums that it compares are these to the last bit.
double FakeQuantizer::noise(std::span<const DenseView> matrices, const TensorScale& tensor_scale) const {
  ErrorSums sum;
  for (const DenseView& rows : matrices) {
    EncodedMatrix packed = EncodedMatrix::make_unfilled(quantizer_.options().format, rows.rows, rows.cols);
    std::vector<ErrorSums> errors(rows.rows);
    const auto bad = quantizer_.encode(rows, tensor_scale, packed.mutable_view(), errors.data());
    NIBBLE_CHECK(!bad.has_value());  // abs_max() has seen every value
    for (const ErrorSums& row : errors) sum.add(row);
  }
  return sum.noise;
}

std::optional<TensorScale> FakeQuantizer::tensor_scale(std::span<const DenseView> matrices, BadValue* bad) const {
  if (!quantizer_.needs_amax() || matrices.empty()) return TensorScale{};
  float amax = 0;
  uint64_t rows_before = 0;
  for (const DenseView& matrix : matrices) {
    const AbsMax one = abs_max(matrix);
    if (one.bad) {
      if (bad != nullptr) *bad = {rows_before + one.bad->row, one.bad->col, one.bad->value};
      return std::nullopt;
    }
    amax = std::max(amax, one.amax);
    rows_before += matrix.rows;
  }
  const TensorScale chosen = quantizer_.tensor_scale(amax, matrices.front().element);
  const std::vector<TensorScale> candidates = quantizer_.tensor_scale_candidates(chosen);
  if (candidates.size() == 1) return chosen;
  std::vector<double> noises;
  noises.reserve(candidates.size());
  for (const TensorScale& candidate : candidates) noises.push_back(noise(matrices, candidate));
  return candidates[static_cast<size_t>(std::ranges::min_element(noises) - noises.begin())];
}

}  // namespace nibble
