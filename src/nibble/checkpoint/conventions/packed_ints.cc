#include "nibble/checkpoint/conventions/packed_ints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/checkpoint/conventions/part_reader.h"
#include "nibble/checkpoint/conventions/rows.h"
#include "nibble/checkpoint/conventions/stored_formats.h"

namespace nibble {

using packed_ints::kPacked;
using packed_ints::kScale;
using packed_ints::kShape;
using packed_ints::kUnpackedZeros;
using packed_ints::kZero;
using packed_ints::words;

namespace {

void check_weight_shape(const Checkpoint& checkpoint, const Weight& weight) {
  const StoredTensor& tensor = *stored_part(checkpoint, weight, PartKind::kShape);
  const std::vector<int64_t> values = read_integers(checkpoint, tensor);
  const auto matches = [&](size_t at, uint64_t expected) {
    return values[at] >= 0 && static_cast<uint64_t>(values[at]) == expected;
  };
  bool good = values.size() >= 2;
  if (values.size() == weight.shape.size()) {
    for (size_t i = 0; good && i < values.size(); ++i) good = matches(i, weight.shape[i]);
  } else {
    good = good && values.size() % 2 == 0 && (values.size() == 2 || values.size() == 2 * weight.slices());
    for (size_t i = 0; good && i < values.size(); ++i) good = matches(i, i % 2 == 0 ? weight.rows() : weight.cols());
  }
  if (good) return;
  throw Error("weight_shape contradicts the packed weight")
      .file(checkpoint.file_of(tensor))
      .tensor(tensor.name)
      .value("weight_shape", fmt::format("[{}]", fmt::join(values, ", ")))
      .value("packed_weight", shape_text(weight.shape))
      .way_out("download the file again; if it is whole, the checkpoint was written wrongly");
}

void read_packed_zeros(const Checkpoint& checkpoint, const Weight& weight, const StoredTensor& tensor, uint64_t bits,
                       uint64_t slice, uint64_t row_begin, EncodedMatrix* out) {
  const uint64_t per_word = 32 / bits;
  const uint64_t scale_cols = weight.format.scale_cols(weight.cols());
  const uint64_t first = row_begin / per_word;
  const uint64_t count = out->rows == 0 ? 0 : (row_begin + out->rows - 1) / per_word - first + 1;
  std::vector<uint32_t> stored(count * scale_cols);
  read_part_rows(checkpoint, tensor, scale_cols * 4, slice * words(weight.rows(), bits) + first, count,
                 reinterpret_cast<std::byte*>(stored.data()), scale_cols * 4);
  for (uint64_t r = 0; r < out->rows; ++r) {
    const uint64_t row = row_begin + r;
    const uint32_t* line = stored.data() + (row / per_word - first) * scale_cols;
    const auto shift = static_cast<uint32_t>(row % per_word * bits);
    for (uint64_t c = 0; c < scale_cols; ++c) {
      out->zeros[r * scale_cols + c] = canonical_zero(line[c] >> shift, bits);
    }
  }
}

void read_unpacked_zeros(const Checkpoint& checkpoint, const Weight& weight, const StoredTensor& tensor, uint64_t bits,
                         uint64_t slice, uint64_t row_begin, EncodedMatrix* out) {
  const uint64_t scale_cols = weight.format.scale_cols(weight.cols());
  read_part_rows(checkpoint, tensor, scale_cols, slice * weight.rows() + row_begin, out->rows,
                 reinterpret_cast<std::byte*>(out->zeros.data()), scale_cols);
  if (bits == 8) return;  // signed, as the canonical array
  for (uint8_t& zero : out->zeros) zero = static_cast<uint8_t>(zero + 8);
}

}  // namespace

EncodedMatrix read_packed_ints(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                               uint64_t rows) {
  NIBBLE_CHECK(slice < weight.slices() && row_begin + rows <= weight.rows());
  check_weight_shape(checkpoint, weight);
  const Format& format = weight.format;
  const uint64_t bits = format.code_bits();
  EncodedMatrix out = EncodedMatrix::make(format, rows, weight.cols());
  read_part_rows(checkpoint, *stored_part(checkpoint, weight, PartKind::kCodes), words(weight.cols(), bits) * 4,
                 slice * weight.rows() + row_begin, rows, out.codes.data(), format.code_row_bytes(weight.cols()));
  if (bits == 8) {
    for (std::byte& code : out.codes) code ^= std::byte{0x80};  // offset binary to two's complement
  }
  read_canonical_scales(checkpoint, weight, slice, row_begin, &out);
  if (const StoredTensor* zeros = stored_part(checkpoint, weight, PartKind::kZeros)) {
    const auto read = weight.variant == kUnpackedZeros ? read_unpacked_zeros : read_packed_zeros;
    read(checkpoint, weight, *zeros, bits, slice, row_begin, &out);
  }
  if (const StoredTensor* index = stored_part(checkpoint, weight, PartKind::kGroupIndex)) {
    out.column_group = read_group_index(checkpoint, *index, format.scale_cols(weight.cols()), format.block_cols);
  }
  return out;
}

std::vector<PartDecl> declare_packed_ints(const WriteRequest& request) {
  const RequestShape shape = request_shape(request);
  const uint64_t bits = request.format.code_bits();
  const std::string module = module_of(request.name);
  const uint64_t scale_cols = request.format.scale_cols(shape.cols);
  std::vector<PartDecl> parts{
      {PartKind::kCodes,
       {join_name(module, kPacked), Dtype::kI32, stacked(request, {shape.rows, words(shape.cols, bits)})}},
      {PartKind::kScales,
       {join_name(module, kScale), scale_dtype(request.format.scale), stacked(request, {shape.rows, scale_cols})}},
      {PartKind::kShape, {join_name(module, kShape), Dtype::kI64, {request.shape.size()}}}};
  if (request.format.zero == ZeroPoint::kCode) {
    parts.push_back({PartKind::kZeros,
                     {join_name(module, kZero), Dtype::kI32, stacked(request, {words(shape.rows, bits), scale_cols})}});
  }
  return parts;
}

std::vector<PartRun> emit_packed_ints(const WriteRequest& request, uint64_t slice, uint64_t row_begin,
                                      const EncodedView& rows) {
  const RequestShape shape = request_shape(request);
  const uint64_t bits = request.format.code_bits();
  std::vector<PartRun> runs{code_run(request, 0, slice, row_begin, rows, words(shape.cols, bits) * 4),
                            scale_run(request, 1, slice, row_begin, rows)};
  if (slice == 0 && row_begin == 0) {
    PartRun run{2, 0, std::vector<std::byte>(request.shape.size() * 8), {}};
    std::memcpy(run.bytes.data(), request.shape.data(), run.bytes.size());
    runs.push_back(std::move(run));
  }
  if (request.format.zero != ZeroPoint::kCode) return runs;
  const uint64_t per_word = 32 / bits;
  const uint64_t scale_cols = request.format.scale_cols(shape.cols);
  NIBBLE_CHECK(row_begin % per_word == 0);
  std::vector<uint32_t> packed(words(rows.rows, bits) * scale_cols);
  for (uint64_t r = 0; r < rows.rows; ++r) {
    for (uint64_t c = 0; c < scale_cols; ++c) {
      packed[r / per_word * scale_cols + c] |= uint32_t{rows.zeros[r * scale_cols + c]} << (r % per_word * bits);
    }
  }
  PartRun run{3, (slice * words(shape.rows, bits) + row_begin / per_word) * scale_cols * 4, {}, {}};
  run.bytes.resize(packed.size() * 4);
  if (!packed.empty()) std::memcpy(run.bytes.data(), packed.data(), run.bytes.size());
  runs.push_back(std::move(run));
  return runs;
}

}  // namespace nibble
