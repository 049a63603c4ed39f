#include "nibble/checkpoint/conventions/byte_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "nibble/base/checked_math.h"
#include "nibble/checkpoint/conventions/part_reader.h"

namespace nibble {
namespace {

std::optional<Element> byte_element(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF8E4M3: return Element::kE4M3;
    case Dtype::kI8: return Element::kInt8;
    default: return std::nullopt;
  }
}

// [ob, 1, ib, 1] is [ob, ib]: some exporters keep the block's own axes as ones.
std::vector<uint64_t> without_block_axes(std::span<const uint64_t> scale, size_t weight_rank) {
  std::vector<uint64_t> shape(scale.begin(), scale.end());
  const size_t rank = shape.size();
  if (rank == weight_rank + 2 && shape[rank - 1] == 1 && shape[rank - 3] == 1) {
    shape.erase(shape.end() - 1);
    shape.erase(shape.end() - 2);
  }
  return shape;
}

uint64_t product(std::span<const uint64_t> shape) {
  uint64_t count = 1;
  for (const uint64_t dim : shape) count *= dim;
  return count;
}

// One scale for each matrix of a stack: [E], [E, 1] or [E, 1, 1].
bool one_per_slice(std::span<const uint64_t> weight, std::span<const uint64_t> scale) {
  const size_t stack = weight.size() - 2;
  if (scale.size() < stack || !same_stack(weight, 2, scale, scale.size() - stack)) return false;
  return std::all_of(scale.begin() + static_cast<ptrdiff_t>(stack), scale.end(), [](uint64_t d) { return d == 1; });
}

using Blocks = std::span<const std::pair<uint64_t, uint64_t>>;

std::optional<ScaleGrid> match_blocks(uint64_t rows, uint64_t cols, uint64_t scale_rows, uint64_t scale_cols,
                                      Blocks blocks) {
  for (const auto& [height, width] : blocks) {
    if (scale_rows == ceil_div(rows, height) && scale_cols == ceil_div(cols, width)) return ScaleGrid{height, width};
  }
  return std::nullopt;
}

// Scales in a matrix of their own. Where several readings fit (tiny weights), the values are the same and the declared
// one gives the name.
std::optional<ScaleGrid> match_matrix(uint64_t rows, uint64_t cols, uint64_t scale_rows, uint64_t scale_cols,
                                      ScaleType type, const ByteSizes& sizes) {
  if (type == ScaleType::kE8M0 && scale_rows == rows && cols % 32 == 0 && scale_cols == cols / 32) {
    return ScaleGrid{1, 32};
  }
  const Blocks declared = sizes.declared == nullptr ? Blocks() : Blocks(sizes.declared->blocks);
  if (const auto grid = match_blocks(rows, cols, scale_rows, scale_cols, declared)) return grid;
  if (scale_rows == rows && scale_cols == 1) return ScaleGrid{1, 0};
  if (declared.empty()) {
    if (const auto grid = match_blocks(rows, cols, scale_rows, scale_cols, sizes.usual_blocks)) return grid;
  }
  if (scale_rows != rows) return std::nullopt;
  const auto group = match_group(cols, scale_cols, sizes.declared);
  return group ? std::optional(ScaleGrid{1, *group}) : std::nullopt;
}

std::string expected_grids(std::span<const uint64_t> weight, const ByteSizes& sizes) {
  const uint64_t rows = weight[weight.size() - 2];
  const uint64_t cols = weight.back();
  std::string text = fmt::format("[1], [{}, 1]", rows);
  const auto add = [&](uint64_t height, uint64_t width) {
    text += fmt::format(", [{}, {}] (blocks {} x {})", ceil_div(rows, height), ceil_div(cols, width), height, width);
  };
  if (sizes.declared != nullptr) {
    for (const auto& [height, width] : sizes.declared->blocks) add(height, width);
    for (const int64_t group : sizes.declared->group_sizes) {
      if (group > 0) add(1, static_cast<uint64_t>(group));
    }
  }
  if (sizes.declared == nullptr || sizes.declared->blocks.empty()) {
    for (const auto& [height, width] : sizes.usual_blocks) add(height, width);
  }
  return text;
}

bool check_zero_point(Claim* claim, const ByteNames& names, const StoredTensor& scale) {
  const StoredTensor* zeros = names.zero_point.empty() ? nullptr : claim->get(names.zero_point);
  if (zeros == nullptr) return true;
  if (zeros->dtype == Dtype::kI8 && element_count(*zeros) == element_count(scale)) return true;
  return claim->bad_shape(names.zero_point, names.scale, "zero points must be I8 and as many as the scales");
}

}  // namespace

std::optional<uint64_t> match_group(uint64_t cols, uint64_t scale_cols, const DeclaredSizes* declared) {
  if (scale_cols == 0 || cols % scale_cols != 0) return std::nullopt;
  const uint64_t group = cols / scale_cols;
  if (declared == nullptr || declared->group_sizes.empty()) return scale_cols == 1 ? 0 : group;
  for (const int64_t size : declared->group_sizes) {
    if (size == -1 ? scale_cols == 1 : static_cast<uint64_t>(size) == group) return size == -1 ? 0 : group;
    // Rows shorter than a group have one scale.
    if (size > 0 && scale_cols == 1 && cols < static_cast<uint64_t>(size)) return 0;
  }
  return std::nullopt;
}

std::optional<ScaleGrid> match_grid(std::span<const uint64_t> weight, std::span<const uint64_t> scale, ScaleType type,
                                    const ByteSizes& sizes) {
  if (weight.size() < 2 || type == ScaleType::kNone) return std::nullopt;
  const uint64_t rows = weight[weight.size() - 2];
  const uint64_t cols = weight.back();
  const std::vector<uint64_t> shape = without_block_axes(scale, weight.size());
  if (shape.size() == 1 && weight.size() == 2 && shape[0] == rows && rows != 1) return ScaleGrid{1, 0};
  if (shape.size() == weight.size() && same_stack(weight, 2, shape, 2)) {
    const auto grid = match_matrix(rows, cols, shape[shape.size() - 2], shape.back(), type, sizes);
    if (grid) return grid;
  }
  const bool one = product(shape) == 1 || (weight.size() > 2 && one_per_slice(weight, shape));
  return one ? std::optional(ScaleGrid{0, 0}) : std::nullopt;
}

bool claim_byte_weight(Claim* claim, const ByteNames& names, std::string weight_name, const ByteSizes& sizes) {
  const StoredTensor* weight = claim->get(names.weight);
  const StoredTensor* scale = claim->get(names.scale);
  if (weight == nullptr || scale == nullptr) return false;
  const auto element = byte_element(weight->dtype);
  if (!element) return false;
  const ScaleType type = scale_type_of(scale->dtype);
  if (weight->shape.size() < 2) return claim->bad_shape(names.weight, names.scale, "a matrix is needed here");
  const auto grid = match_grid(weight->shape, scale->shape, type, sizes);
  if (!grid || type == ScaleType::kE4M3) {
    return claim->bad_shape(names.scale, names.weight,
                            "these scales do not go with the weight; if the weight is a part of a larger one, cut its "
                            "scales in the same way",
                            {{"expected", expected_grids(weight->shape, sizes)}});
  }
  if (!check_zero_point(claim, names, *scale)) return false;
  const bool zeros = *element == Element::kInt8 && !names.zero_point.empty() && claim->get(names.zero_point) != nullptr;
  claim->add(std::move(weight_name), byte_format(*element, *grid, type, zeros), weight->shape);
  claim->attach(PartKind::kCodes, names.weight);
  claim->attach(PartKind::kScales, names.scale);
  if (!names.input_scale.empty()) claim->attach(PartKind::kInputScale, names.input_scale);
  if (zeros) claim->attach(PartKind::kZeros, names.zero_point);
  return true;
}

EncodedMatrix read_byte_weight(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                               uint64_t rows) {
  EncodedMatrix out = read_canonical(checkpoint, weight, slice, row_begin, rows);
  if (weight.format.zero == ZeroPoint::kNone || out.zeros.empty()) return out;
  const uint64_t row_bytes = weight.format.scale_cols(weight.cols());
  const uint64_t first =
      slice * weight.format.scale_rows(weight.rows()) + (weight.format.block_rows == 0 ? 0 : row_begin);
  read_part_rows(checkpoint, *stored_part(checkpoint, weight, PartKind::kZeros), row_bytes, first,
                 out.zeros.size() / row_bytes, reinterpret_cast<std::byte*>(out.zeros.data()), row_bytes);
  return out;
}

}  // namespace nibble
