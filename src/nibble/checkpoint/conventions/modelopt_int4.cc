#include "nibble/checkpoint/conventions/modelopt_int4.h"

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"
#include "nibble/checkpoint/conventions/byte_weights.h"
#include "nibble/checkpoint/conventions/part_reader.h"
#include "nibble/checkpoint/conventions/stored_formats.h"

namespace nibble {
namespace {

uint8_t nibble_of(std::byte byte, uint64_t row) {
  const auto bits = std::to_integer<uint32_t>(byte) >> (row % 2 * 4);
  return static_cast<uint8_t>((bits & 0xF) ^ 8);  // two's complement to offset binary
}

}  // namespace

bool claim_modelopt_int4(Claim* claim, const Fp4Names& names, std::string weight_name, const DeclaredSizes* declared) {
  const StoredTensor& codes = *claim->get(names.codes);
  const StoredTensor& scale = *claim->get(names.scale);
  if (claim->get(names.second) != nullptr) {
    claim->refuse("unsupported", names.second,
                  "w4a8-awq: INT4 weights with a second-level scale are not read here; start from the unquantized "
                  "checkpoint");
    return false;
  }
  std::vector<uint64_t> shape = codes.shape;
  if (shape.size() >= 2) shape[shape.size() - 2] *= 2;
  const bool rows_fit = shape.size() >= 2 && scale.shape.size() == shape.size() && same_stack(shape, 1, scale.shape, 1);
  const auto group = rows_fit ? match_group(shape.back(), scale.shape.back(), declared) : std::nullopt;
  if (!group) {
    return claim->bad_shape(names.scale, names.codes,
                            "INT4 packed along the rows needs a scale row for each of its two rows a byte, and columns "
                            "in groups of the declared size",
                            {{"rows_and_columns", shape_text(shape)}});
  }
  claim->add(std::move(weight_name), int_format(4, *group, scale_type_of(scale.dtype), false), std::move(shape));
  claim->attach(PartKind::kCodes, names.codes);
  claim->attach(PartKind::kScales, names.scale);
  claim->attach(PartKind::kInputScale, names.input_scale);
  return true;
}

EncodedMatrix read_modelopt_int4(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                                 uint64_t rows) {
  NIBBLE_CHECK(slice < weight.slices() && row_begin + rows <= weight.rows());
  const uint64_t cols = weight.cols();
  EncodedMatrix out = EncodedMatrix::make(weight.format, rows, cols);
  const uint64_t first = row_begin / 2;
  const uint64_t count = rows == 0 ? 0 : (row_begin + rows - 1) / 2 - first + 1;
  std::vector<std::byte> stored(count * cols);
  read_part_rows(checkpoint, *stored_part(checkpoint, weight, PartKind::kCodes), cols,
                 slice * (weight.rows() / 2) + first, count, stored.data(), cols);
  const uint64_t row_bytes = weight.format.code_row_bytes(cols);
  for (uint64_t r = 0; r < rows; ++r) {
    const uint64_t row = row_begin + r;
    const std::byte* line = stored.data() + (row / 2 - first) * cols;
    std::byte* to = out.codes.data() + r * row_bytes;
    for (uint64_t k = 0; k < cols; ++k) to[k / 2] |= std::byte(nibble_of(line[k], row) << (k % 2 * 4));
  }
  read_canonical_scales(checkpoint, weight, slice, row_begin, &out);
  return out;
}

}  // namespace nibble
