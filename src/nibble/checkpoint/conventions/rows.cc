#include "nibble/checkpoint/conventions/rows.h"

#include <cstring>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"
#include "nibble/base/strings.h"

namespace nibble {

PartRun code_run(const WriteRequest& request, uint32_t part, uint64_t slice, uint64_t row_begin,
                 const EncodedView& rows, uint64_t stored_row_bytes) {
  const uint64_t row_bytes = request.format.code_row_bytes(rows.cols);
  const uint64_t stride = stored_row_bytes == 0 ? row_bytes : stored_row_bytes;
  NIBBLE_CHECK(stride >= row_bytes);
  PartRun run{part, (slice * request_shape(request).rows + row_begin) * stride, {}, {}};
  if (stride == row_bytes) {
    run.view = {rows.codes, rows.rows * row_bytes};
    return run;
  }
  run.bytes.resize(rows.rows * stride);
  for (uint64_t r = 0; r < rows.rows; ++r) {
    std::memcpy(run.bytes.data() + r * stride, rows.codes + r * row_bytes, row_bytes);
  }
  return run;
}

PartRun scale_run(const WriteRequest& request, uint32_t part, uint64_t slice, uint64_t row_begin,
                  const EncodedView& rows) {
  const Format& format = request.format;
  const uint64_t row_bytes = format.scale_cols(rows.cols) * format.scale_bytes();
  const uint64_t total_rows = request_shape(request).rows;
  uint64_t first = slice * format.scale_rows(total_rows);
  uint64_t count = format.scale_rows(rows.rows);
  if (format.block_rows > 0) {
    const uint64_t end = row_begin + rows.rows;
    NIBBLE_CHECK(row_begin % format.block_rows == 0 && (end % format.block_rows == 0 || end == total_rows));
    first += row_begin / format.block_rows;
    count = ceil_div(rows.rows, format.block_rows);
  }
  PartRun run{part, first * row_bytes, std::vector<std::byte>(count * row_bytes), {}};
  if (!run.bytes.empty()) std::memcpy(run.bytes.data(), rows.scales, run.bytes.size());
  return run;
}

PartRun second_run(uint32_t part, uint64_t slice, const EncodedView& rows, SecondLevel level) {
  // The two directions are reciprocals of each other: 1 is the only value that stands for both.
  NIBBLE_CHECK(rows.tensor_scale.level == level || rows.tensor_scale.value == 1);
  PartRun run{part, slice * sizeof(float), std::vector<std::byte>(sizeof(float)), {}};
  std::memcpy(run.bytes.data(), &rows.tensor_scale.value, sizeof(float));
  return run;
}

RequestShape request_shape(const WriteRequest& request) {
  NIBBLE_CHECK(request.shape.size() >= 2);
  RequestShape shape;
  for (size_t i = 0; i + 2 < request.shape.size(); ++i) shape.slices *= request.shape[i];
  shape.rows = request.shape[request.shape.size() - 2];
  shape.cols = request.shape.back();
  return shape;
}

std::vector<uint64_t> stacked(const WriteRequest& request, std::initializer_list<uint64_t> tail) {
  std::vector<uint64_t> shape(request.shape.begin(), request.shape.end() - 2);
  shape.insert(shape.end(), tail);
  return shape;
}

std::string module_of(std::string_view weight_name) { return std::string(without_suffix(weight_name, ".weight")); }

Dtype scale_dtype(ScaleType type) {
  switch (type) {
    case ScaleType::kBF16: return Dtype::kBF16;
    case ScaleType::kF16: return Dtype::kF16;
    case ScaleType::kE8M0: return Dtype::kU8;
    case ScaleType::kE4M3: return Dtype::kF8E4M3;
    default: return Dtype::kF32;
  }
}

}  // namespace nibble
