#include "nibble/engine/weights/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"
#include "nibble/kernels/cpu/tile_view.h"
#include "nibble/kernels/pack.h"
#include "nibble/kernels/select.h"
#include "nibble/numerics/decode.h"

namespace nibble {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{4} << 20;
constexpr uint64_t kRowStep = 128;  // chunks are cut where no block of rows is

std::string file_of(const Checkpoint& checkpoint, const Weight& weight) {
  return checkpoint.file_of(checkpoint.tensors()[weight.parts.front().tensor]);
}

Error refuse(const Checkpoint& checkpoint, const Weight& weight, const std::string& why) {
  Error error("no kernel multiplies this weight: " + why);
  error.file(file_of(checkpoint, weight)).tensor(weight.name).value("format", weight.format.name);
  error.way_out(fmt::format("convert it: nibble quantize {} DIR --format bf16", checkpoint.path().string()));
  return error;
}

// The format in which a weight is multiplied: its own, or for floats that no kernel reads the next wider one.
Format multiplied_format(const Format& stored) {
  if (!stored.is_dense() || stored.element == Element::kBF16 || stored.element == Element::kF32) return stored;
  return parse_format("f32");
}

EncodedMatrix in_format(EncodedMatrix matrix, const Format& format) {
  if (matrix.format.element == format.element) return matrix;
  EncodedMatrix wide = EncodedMatrix::make_unfilled(format, matrix.rows, matrix.cols);
  convert(matrix.dense_view(), format.element, wide.codes.data());
  return wide;
}

// Rows begin, begin + stride … of a matrix whose scales belong to single rows, as a matrix of their own.
EncodedMatrix pick_rows(const EncodedMatrix& from, uint64_t begin, uint64_t stride, uint64_t count) {
  EncodedMatrix to = EncodedMatrix::make_unfilled(from.format, count, from.cols);
  to.tensor_scale = from.tensor_scale;
  const auto copy = [&](auto& out, const auto& in) {
    const uint64_t per_row = in.size() / from.rows;
    for (uint64_t i = 0; i < count; ++i) {
      std::copy_n(in.begin() + static_cast<ptrdiff_t>((begin + i * stride) * per_row), per_row,
                  out.begin() + static_cast<ptrdiff_t>(i * per_row));
    }
  };
  copy(to.codes, from.codes);
  copy(to.scales, from.scales);
  copy(to.zeros, from.zeros);
  copy(to.mins, from.mins);
  return to;
}

bool scales_belong_to_rows(const Format& format) { return format.is_dense() || format.block_rows == 1; }

// Rows of the pick [first, first + count), plain and contiguous.
EncodedMatrix read_picked(const Checkpoint& checkpoint, const Weight& weight, const RowPick& pick, uint64_t first,
                          uint64_t count) {
  if (pick.stride == 1) return read_rows(checkpoint, weight, pick.slice, pick.begin + first, count);
  const uint64_t begin = pick.begin + first * pick.stride;
  const EncodedMatrix rows = read_rows(checkpoint, weight, pick.slice, begin, (count - 1) * pick.stride + 1);
  return pick_rows(rows, 0, pick.stride, count);
}

uint64_t rows_at_a_time(const Weight& weight, const RowPick& pick) {
  // What cannot be read by rows is read once.
  const bool whole = weight.row_order != RowOrder::kPlain || !weight.convention->rows_contiguous(weight);
  if (whole) return pick.count;
  const uint64_t row_bytes = std::max<uint64_t>(1, weight.format.code_row_bytes(weight.cols()) * pick.stride);
  return std::max(kRowStep, kChunkBytes / row_bytes / kRowStep * kRowStep);
}

}  // namespace

void set_kernel(const Arithmetics& how, Linear* linear) {
  linear->activations = activations_of(linear->matrix.layout, how.integer_activations, how.rounding);
  const bool rounded = how.rounding != ActivationRounding::kE4M3 || linear->matrix.layout.codes == CodeKind::kE4M3;
  linear->rounding = rounded ? how.rounding : ActivationRounding::kNone;
  linear->choice = &choose_kernels(linear->matrix.layout, linear->activations, how.kernel);
}

WeightLayout layout_of(const Checkpoint& checkpoint, const Weight& weight, uint64_t rows) {
  const LayoutChoice choice = choose_layout(multiplied_format(weight.format), rows, weight.cols());
  if (!choice.layout) throw refuse(checkpoint, weight, choice.obstacle);
  return *choice.layout;
}

Linear load_linear(const Checkpoint& checkpoint, const Weight& weight, const RowPick& pick, const LoadOptions& how) {
  const Format format = multiplied_format(weight.format);
  const WeightLayout layout = layout_of(checkpoint, weight, pick.count);
  if (pick.stride != 1 && !scales_belong_to_rows(format)) {
    throw refuse(checkpoint, weight, "its rows alternate between two matrices and share scales");
  }
  Linear linear;
  linear.storage = how.slab->take(layout.bytes());
  linear.matrix = {layout, linear.storage.data(), 1};
  const uint64_t step = rows_at_a_time(weight, pick);
  const uint64_t chunks = ceil_div(pick.count, step);
  how.pool->run(chunks, [&](uint64_t i) {
    const uint64_t first = i * step, count = std::min(step, pick.count - first);
    const EncodedMatrix rows = in_format(read_picked(checkpoint, weight, pick, first, count), format);
    if (!rows.column_group.empty()) throw refuse(checkpoint, weight, "its columns are grouped out of order");
    if (i == 0) linear.matrix.multiplier = multiplier_of(format, rows.tensor_scale);
    try {
      pack_rows(layout, rows.view(), first, linear.storage.data());
    } catch (Error& error) {
      throw error.file(file_of(checkpoint, weight)).tensor(weight.name);
    }
  });
  set_kernel(how.arithmetic, &linear);
  return linear;
}

Linear load_linear(const Checkpoint& checkpoint, const Weight& weight, const LoadOptions& how) {
  return load_linear(checkpoint, weight, {0, 0, 1, weight.rows()}, how);
}

Linear make_linear(const std::vector<float>& values, uint64_t rows, uint64_t cols, const LoadOptions& how) {
  const bool narrow = std::all_of(values.begin(), values.end(), [](float v) { return bf16_round(v) == v; });
  const Format format = parse_format(narrow ? "bf16" : "f32");
  Linear linear;
  const WeightLayout layout = choose_layout(format, rows, cols).layout.value();
  EncodedMatrix matrix = EncodedMatrix::make_unfilled(format, rows, cols);
  const DenseView dense{reinterpret_cast<const std::byte*>(values.data()), Element::kF32, rows, cols, cols * 4};
  convert(dense, format.element, matrix.codes.data());
  linear.storage = how.slab->take(layout.bytes());
  linear.matrix = {layout, linear.storage.data(), 1};
  pack_rows(layout, matrix.view(), 0, linear.storage.data());
  set_kernel(how.arithmetic, &linear);
  return linear;
}

void read_row(const ResidentMatrix& matrix, uint64_t row, float* out) {
  const WeightLayout& layout = matrix.layout;
  for (uint64_t t = 0; t < layout.tiles(); ++t) {
    const TileView tile(matrix, row / kRowGroup, t);
    const float scale = tile.scale(row % kRowGroup), min = tile.min(row % kRowGroup);
    const uint64_t begin = t * layout.tile_cols, end = std::min(layout.k, begin + layout.tile_cols);
    for (uint64_t col = begin; col < end; ++col) out[col] = tile.value(row % kRowGroup, col - begin) * scale + min;
  }
}

}  // namespace nibble
