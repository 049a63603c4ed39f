#include "nibble/checkpoint/conventions/word_packed.h"

#include <fmt/format.h>

#include <cstring>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"

namespace nibble {

using word_packed::kScales;
using word_packed::kWeight;
using word_packed::kZeros;

std::optional<WordPacked> word_packed_parts(Claim* claim) {
  const StoredTensor* weight = claim->get(kWeight);
  const StoredTensor* zeros = claim->get(kZeros);
  const StoredTensor* scales = claim->get(kScales);
  if (weight == nullptr) {
    if (zeros != nullptr) claim->lacks(kZeros, kWeight);
    return std::nullopt;
  }
  if (scales == nullptr || zeros == nullptr) {
    claim->lacks(kWeight, scales == nullptr ? kScales : kZeros);
    return std::nullopt;
  }
  const auto matrix = [](const StoredTensor& t) { return t.shape.size() == 2; };
  const auto word = [](const StoredTensor& t) { return t.dtype == Dtype::kI32 || t.dtype == Dtype::kU32; };
  const ScaleType type = scale_type_of(scales->dtype);
  const bool float_scale = type == ScaleType::kF16 || type == ScaleType::kBF16 || type == ScaleType::kF32;
  if (!matrix(*weight) || !matrix(*zeros) || !matrix(*scales) || !word(*weight) || !word(*zeros) || !float_scale ||
      zeros->shape[0] != scales->shape[0]) {
    claim->bad_shape(
        kScales, kWeight,
        "qweight and qzeros must be matrices of I32, scales a matrix of F16, BF16 or F32, with as many groups "
        "as qzeros",
        {{"qzeros", std::string(dtype_name(zeros->dtype)) + " " + shape_text(zeros->shape)}});
    return std::nullopt;
  }
  return WordPacked{weight->shape[0], weight->shape[1], scales->shape[0], scales->shape[1], zeros->shape[1]};
}

std::optional<uint64_t> word_packed_group(uint64_t cols, uint64_t groups, const DeclaredSizes* declared) {
  if (declared == nullptr || declared->group_sizes.empty()) {
    if (groups == 0 || cols % groups != 0) return std::nullopt;
    return groups == 1 ? 0 : cols / groups;
  }
  for (const int64_t size : declared->group_sizes) {
    if (size == -1 && groups == 1) return 0;
    // The last group of a row may be a part of one.
    if (size > 0 && ceil_div(cols, static_cast<uint64_t>(size)) == groups) return static_cast<uint64_t>(size);
  }
  return std::nullopt;
}

bool refuse_groups(Claim* claim, uint64_t cols, uint64_t groups, const DeclaredSizes* declared) {
  Values values{{"columns", std::to_string(cols)}, {"groups_stored", std::to_string(groups)}};
  if (declared != nullptr) {
    for (const int64_t size : declared->group_sizes) {
      values.emplace_back("group", std::to_string(size));
      if (size > 0) {
        values.emplace_back("groups_expected", std::to_string(ceil_div(cols, static_cast<uint64_t>(size))));
      }
    }
  }
  return claim->bad_shape(
      kScales, kWeight,
      "the groups do not go with the columns and the declared group size; if the weight is a part of "
      "a larger one, cut its scales in the same way",
      std::move(values));
}

std::vector<uint32_t> read_words(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  std::vector<uint32_t> words(tensor.bytes / 4);
  checkpoint.read(tensor, 0, std::as_writable_bytes(std::span(words)));
  return words;
}

void read_turned_scales(const Checkpoint& checkpoint, const Weight& weight, uint64_t row_begin, EncodedMatrix* out) {
  const std::vector<std::byte> stored = checkpoint.read_all(*stored_part(checkpoint, weight, PartKind::kScales));
  const uint64_t width = weight.format.scale_bytes();
  const uint64_t groups = weight.format.scale_cols(weight.cols());
  NIBBLE_CHECK(stored.size() == groups * weight.rows() * width);
  for (uint64_t r = 0; r < out->rows; ++r) {
    for (uint64_t g = 0; g < groups; ++g) {
      std::memcpy(out->scales.data() + (r * groups + g) * width,
                  stored.data() + (g * weight.rows() + row_begin + r) * width, width);
    }
  }
}

}  // namespace nibble
