#include "nibble/checkpoint/conventions/part_reader.h"

#include <algorithm>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"
#include "nibble/checkpoint/conventions/claim.h"

namespace nibble {
namespace {

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

int64_t integer_at(Dtype dtype, const std::byte* at) {
  switch (dtype) {
    case Dtype::kI8: return load<int8_t>(at);
    case Dtype::kU8: return load<uint8_t>(at);
    case Dtype::kI16: return load<int16_t>(at);
    case Dtype::kI32: return load<int32_t>(at);
    case Dtype::kU32: return load<uint32_t>(at);
    default: return load<int64_t>(at);
  }
}

}  // namespace

void read_part_rows(const Checkpoint& checkpoint, const StoredTensor& tensor, uint64_t row_bytes, uint64_t first,
                    uint64_t rows, std::byte* out, uint64_t out_stride) {
  if (rows == 0 || row_bytes == 0) return;
  NIBBLE_CHECK((first + rows) * row_bytes <= tensor.bytes);
  if (row_bytes == out_stride) {
    checkpoint.read(tensor, first * row_bytes, {out, rows * row_bytes});
    return;
  }
  std::vector<std::byte> stored(rows * row_bytes);
  checkpoint.read(tensor, first * row_bytes, stored);
  for (uint64_t r = 0; r < rows; ++r) {
    std::memcpy(out + r * out_stride, stored.data() + r * row_bytes, std::min(row_bytes, out_stride));
  }
}

EncodedMatrix read_canonical(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                             uint64_t rows) {
  const Format& format = weight.format;
  NIBBLE_CHECK(slice < weight.slices() && row_begin + rows <= weight.rows());
  const uint64_t phase = format.block_rows > 1 ? row_begin % format.block_rows : 0;
  EncodedMatrix out = EncodedMatrix::make_unfilled(format, rows, weight.cols(), phase);
  const uint64_t row_bytes = format.code_row_bytes(weight.cols());
  read_part_rows(checkpoint, *stored_part(checkpoint, weight, PartKind::kCodes), row_bytes,
                 slice * weight.rows() + row_begin, rows, out.codes.data(), row_bytes);
  if (!format.is_dense()) read_canonical_scales(checkpoint, weight, slice, row_begin, &out);
  return out;
}

void read_canonical_scales(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                           EncodedMatrix* out) {
  const Format& format = weight.format;
  const StoredTensor& scales = *stored_part(checkpoint, weight, PartKind::kScales);
  const uint64_t row_bytes = format.scale_cols(weight.cols()) * format.scale_bytes();
  if (row_bytes == 0 || out->scales.empty()) return;
  uint64_t first = slice * format.scale_rows(weight.rows());
  if (format.block_rows > 0) first += row_begin / format.block_rows;
  if (scales.bytes == format.scale_bytes()) first = 0;  // one scale for the whole stack
  read_part_rows(checkpoint, scales, row_bytes, first, out->scales.size() / row_bytes, out->scales.data(), row_bytes);
}

float read_float(const Checkpoint& checkpoint, const StoredTensor& tensor, uint64_t slice) {
  NIBBLE_CHECK(tensor.dtype == Dtype::kF32);
  std::byte bytes[4];
  checkpoint.read(tensor, tensor.bytes == 4 ? 0 : slice * 4, bytes);
  return load<float>(bytes);
}

std::vector<int64_t> read_integers(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  const std::vector<std::byte> bytes = checkpoint.read_all(tensor);
  const uint64_t width = dtype_bits(tensor.dtype) / 8;
  std::vector<int64_t> out(bytes.size() / width);
  for (size_t i = 0; i < out.size(); ++i) out[i] = integer_at(tensor.dtype, bytes.data() + i * width);
  return out;
}

std::vector<uint32_t> read_group_index(const Checkpoint& checkpoint, const StoredTensor& tensor, uint64_t groups,
                                       uint64_t group_size) {
  const std::vector<int64_t> stored = read_integers(checkpoint, tensor);
  const auto unused = [](int64_t g) { return g == -1; };
  if (std::all_of(stored.begin(), stored.end(), unused)) return {};
  std::vector<uint32_t> out(stored.size());
  bool ascending = true;
  for (size_t k = 0; k < stored.size(); ++k) {
    if (stored[k] < 0 || static_cast<uint64_t>(stored[k]) >= groups) {
      throw Error("a group index points past the scales")
          .file(checkpoint.file_of(tensor))
          .tensor(tensor.name)
          .value("column", k)
          .value("group", stored[k])
          .value("groups", groups)
          .way_out("download the file again; if it is whole, the checkpoint was written wrongly");
    }
    out[k] = static_cast<uint32_t>(stored[k]);
    ascending = ascending && out[k] == (group_size == 0 ? 0 : k / group_size);
  }
  if (ascending) out.clear();
  return out;
}

}  // namespace nibble
