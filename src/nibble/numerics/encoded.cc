#include "nibble/numerics/encoded.h"

#include <algorithm>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"

namespace nibble {

EncodedMatrix EncodedMatrix::make(const Format& format, uint64_t rows, uint64_t cols, uint64_t row_phase) {
  EncodedMatrix matrix = make_unfilled(format, rows, cols, row_phase);
  std::ranges::fill(matrix.codes, std::byte{0});
  return matrix;
}

EncodedMatrix EncodedMatrix::make_unfilled(const Format& format, uint64_t rows, uint64_t cols, uint64_t row_phase) {
  NIBBLE_CHECK(row_phase == 0 || row_phase < format.block_rows);
  EncodedMatrix matrix;
  matrix.format = format;
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.row_phase = row_phase;
  matrix.codes.resize(rows * format.code_row_bytes(cols));
  const uint64_t blocks = format.scale_rows(row_phase + rows) * format.scale_cols(cols);
  matrix.scales.resize(blocks * format.scale_bytes());
  if (format.zero == ZeroPoint::kCode) matrix.zeros.resize(blocks);
  if (format.zero == ZeroPoint::kMin) matrix.mins.resize(blocks);
  return matrix;
}

EncodedView EncodedMatrix::view() const {
  EncodedView view;
  view.format = &format;
  view.rows = rows;
  view.cols = cols;
  view.row_phase = row_phase;
  view.codes = codes.data();
  view.scales = scales.data();
  view.zeros = zeros.empty() ? nullptr : zeros.data();
  view.mins = mins.empty() ? nullptr : mins.data();
  view.tensor_scale = tensor_scale;
  view.column_group = column_group.empty() ? nullptr : column_group.data();
  return view;
}

MutableEncodedView EncodedMatrix::mutable_view() {
  MutableEncodedView view;
  view.format = &format;
  view.rows = rows;
  view.cols = cols;
  view.row_phase = row_phase;
  view.codes = codes.data();
  view.scales = scales.data();
  view.zeros = zeros.empty() ? nullptr : zeros.data();
  view.mins = mins.empty() ? nullptr : mins.data();
  view.tensor_scale = tensor_scale;
  view.column_group = column_group.empty() ? nullptr : column_group.data();
  return view;
}

DenseView EncodedMatrix::dense_view() const {
  NIBBLE_CHECK(format.is_dense());
  return {.data = codes.data(),
          .element = format.element,
          .rows = rows,
          .cols = cols,
          .row_stride = format.code_row_bytes(cols)};
}

uint64_t EncodedMatrix::bytes() const {
  return codes.size() + scales.size() + zeros.size() + mins.size() * sizeof(float) +
         (format.two_level ? sizeof(float) : 0);
}

}  // namespace nibble
