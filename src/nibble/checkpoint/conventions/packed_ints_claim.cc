#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "nibble/checkpoint/conventions/byte_weights.h"
#include "nibble/checkpoint/conventions/packed_ints.h"
#include "nibble/checkpoint/conventions/part_reader.h"
#include "nibble/checkpoint/conventions/stored_formats.h"

namespace nibble {

using packed_ints::kIndex;
using packed_ints::kPacked;
using packed_ints::kScale;
using packed_ints::kShape;
using packed_ints::kUnpackedZeros;
using packed_ints::kZero;
using packed_ints::words;

namespace {

constexpr std::array<uint64_t, 2> kReadable = {4, 8};
constexpr std::array<uint64_t, 6> kOtherWidths = {3, 2, 5, 6, 7, 1};

struct Split {
  uint64_t bits = 0, cols = 0, group = 0;
};

bool may_have_bits(uint64_t bits, const DeclaredSizes* declared) {
  if (declared == nullptr || declared->bits.empty()) return true;
  return std::find(declared->bits.begin(), declared->bits.end(), bits) != declared->bits.end();
}

// From the headers alone: a declared group size times the scale columns gives the columns.
std::optional<Split> split_by_group(uint64_t packed_cols, uint64_t scale_cols, const DeclaredSizes* declared) {
  if (declared == nullptr || scale_cols < 2) return std::nullopt;
  for (const int64_t size : declared->group_sizes) {
    if (size <= 0) continue;
    const auto cols = checked_mul(scale_cols, static_cast<uint64_t>(size));
    if (!cols) continue;
    for (const uint64_t bits : kReadable) {
      if (may_have_bits(bits, declared) && words(*cols, bits) == packed_cols) {
        return Split{bits, *cols, static_cast<uint64_t>(size)};
      }
    }
  }
  return std::nullopt;
}

// Columns as weight_shape has them: (N, K), (E, N, K), or (N, K) for each matrix of a stack.
uint64_t stored_cols(const Claim& claim, const StoredTensor& shape) {
  const std::vector<int64_t> values = read_integers(*claim.context().checkpoint, shape);
  return values.size() < 2 || values.back() < 0 ? 0 : static_cast<uint64_t>(values.back());
}

// Other widths are told by their name. Elements used to stay inside a word; since 2026 they form one stream of bits.
std::optional<uint64_t> other_width(uint64_t packed_cols, uint64_t cols, const DeclaredSizes* declared) {
  const bool one_declared = declared != nullptr && declared->bits.size() == 1;
  if (one_declared && declared->bits[0] != 4 && declared->bits[0] != 8) return declared->bits[0];
  if (cols == 0 || words(cols, 4) == packed_cols || words(cols, 8) == packed_cols) return std::nullopt;
  for (const uint64_t bits : kOtherWidths) {
    const auto stream = checked_mul(cols, bits);
    if (stream && (ceil_div(*stream, 32) == packed_cols || ceil_div(cols, 32 / bits) == packed_cols)) return bits;
  }
  return std::nullopt;
}

std::string sizes_text(const DeclaredSizes* declared) {
  if (declared == nullptr || declared->group_sizes.empty()) return "none declared";
  return fmt::format("{}", fmt::join(declared->group_sizes, ", "));
}

void refuse_split(Claim* claim, uint64_t packed_cols, uint64_t scale_cols, uint64_t cols,
                  const DeclaredSizes* declared) {
  if (const auto bits = other_width(packed_cols, cols, declared)) {
    return claim->refuse(
        "unsupported", kPacked,
        fmt::format("int{}: packed integers of {} bits are not read here, only of 4 and 8; start from the "
                    "unquantized checkpoint, or convert with the library that wrote this one",
                    *bits, *bits),
        {{"bits", std::to_string(*bits)}, {"columns", std::to_string(cols)}});
  }
  Values values{{"columns", std::to_string(cols)}, {"group", sizes_text(declared)}};
  for (const uint64_t bits : kReadable) {
    if (words(cols, bits) != packed_cols || !may_have_bits(bits, declared)) continue;
    if (declared != nullptr && declared->group_sizes.size() == 1 && declared->group_sizes[0] > 0) {
      const auto group = static_cast<uint64_t>(declared->group_sizes[0]);
      values.emplace_back("scale_columns_expected", std::to_string(ceil_div(cols, group)));
    }
    values.emplace_back("scale_columns_stored", std::to_string(scale_cols));
    claim->bad_shape(
        kScale, kPacked,
        "the scale columns do not go with the columns and the declared group size; if the weight is a part "
        "of a larger one, cut its scales in the same way",
        std::move(values));
    return;
  }
  values.emplace_back("words_stored", std::to_string(packed_cols));
  values.emplace_back("words_expected", std::to_string(words(cols, 4)));
  claim->bad_shape(kPacked, kScale, "the packed words do not go with weight_shape; write the checkpoint again",
                   std::move(values));
}

std::optional<Split> split_of(Claim* claim, const DeclaredSizes* declared) {
  const StoredTensor& packed = *claim->get(kPacked);
  const uint64_t packed_cols = packed.shape.back();
  const uint64_t scale_cols = claim->get(kScale)->shape.back();
  if (const auto split = split_by_group(packed_cols, scale_cols, declared)) return split;
  const uint64_t cols = stored_cols(*claim, *claim->get(kShape));
  if (!other_width(packed_cols, cols, declared)) {
    for (const uint64_t bits : kReadable) {
      if (!may_have_bits(bits, declared) || words(cols, bits) != packed_cols) continue;
      if (const auto group = match_group(cols, scale_cols, declared)) return Split{bits, cols, *group};
    }
  }
  refuse_split(claim, packed_cols, scale_cols, cols, declared);
  return std::nullopt;
}

bool check_zeros(Claim* claim, uint64_t bits, bool* unpacked) {
  const StoredTensor* zeros = claim->get(kZero);
  const StoredTensor& scale = *claim->get(kScale);
  *unpacked = zeros->dtype == Dtype::kI8;
  std::vector<uint64_t> expected = scale.shape;
  if (!*unpacked) {
    uint64_t& rows = expected[expected.size() - 2];
    rows = words(rows, bits);
  }
  if ((*unpacked || zeros->dtype == Dtype::kI32) && zeros->shape == expected) return true;
  return claim->bad_shape(kZero, kScale, "zero points must be I32 packed along the rows, or I8 of the scales' shape",
                          {{"expected", shape_text(expected)}});
}

bool check_parts(Claim* claim, const DeclaredSizes* declared) {
  const StoredTensor& packed = *claim->get(kPacked);
  const StoredTensor* scale = claim->get(kScale);
  const StoredTensor* shape = claim->get(kShape);
  if (scale == nullptr) return claim->lacks(kPacked, kScale);
  if (shape == nullptr) return claim->lacks(kPacked, kShape);
  if (shape->dtype != Dtype::kI64 && shape->dtype != Dtype::kI32) {
    return claim->bad_shape(kShape, kPacked, "weight_shape must be I64 or I32");
  }
  const ScaleType type = scale_type_of(scale->dtype);
  const bool float_scale = type == ScaleType::kBF16 || type == ScaleType::kF16 || type == ScaleType::kF32;
  if (packed.shape.size() < 2 || !float_scale || packed.shape.size() != scale->shape.size() ||
      !same_stack(packed.shape, 1, scale->shape, 1)) {
    return claim->bad_shape(kScale, kPacked, "scales must be BF16, F16 or F32, one row for each row of the weight");
  }
  if (claim->get(kZero) == nullptr && declared != nullptr && declared->asymmetric && !declared->symmetric) {
    return claim->lacks(kPacked, kZero);
  }
  return true;
}

}  // namespace

bool claim_packed_ints(Claim* claim, const DeclaredSizes* declared) {
  if (!check_parts(claim, declared)) return false;
  const auto split = split_of(claim, declared);
  if (!split) return false;
  const StoredTensor& packed = *claim->get(kPacked);
  const bool zeros = claim->get(kZero) != nullptr;
  bool unpacked = false;
  if (zeros && !check_zeros(claim, split->bits, &unpacked)) return false;
  const StoredTensor* index = claim->get(kIndex);
  if (index != nullptr && (index->dtype != Dtype::kI32 || index->shape != std::vector<uint64_t>{split->cols})) {
    return claim->bad_shape(kIndex, kPacked, "a group index must be I32, one for each column",
                            {{"columns", std::to_string(split->cols)}});
  }
  std::vector<uint64_t> shape = packed.shape;
  shape.back() = split->cols;
  const ScaleType type = scale_type_of(claim->get(kScale)->dtype);
  claim->add(claim->name_of("weight"), int_format(split->bits, split->group, type, zeros), std::move(shape),
             unpacked ? kUnpackedZeros : 0);
  claim->attach(PartKind::kCodes, kPacked);
  claim->attach(PartKind::kScales, kScale);
  claim->attach(PartKind::kZeros, kZero);
  claim->attach(PartKind::kGroupIndex, kIndex);
  claim->attach(PartKind::kShape, kShape);
  return true;
}

}  // namespace nibble
