#include "nibble/checkpoint/conventions/fp4_weights.h"

#include <algorithm>
#include <optional>

#include "nibble/checkpoint/conventions/part_reader.h"
#include "nibble/checkpoint/conventions/stored_formats.h"

namespace nibble {
namespace {

// Logical columns of a row of codes; 0 if the type holds no pairs of elements.
uint64_t code_cols(const StoredTensor& codes) {
  if (codes.shape.empty()) return 0;
  const bool pairs = codes.dtype == Dtype::kU8 || codes.dtype == Dtype::kI8;
  return pairs ? codes.shape.back() * 2 : codes.dtype == Dtype::kF4 ? codes.shape.back() : 0;
}

bool is_pair_type(Dtype dtype) { return dtype == Dtype::kU8 || dtype == Dtype::kI8 || dtype == Dtype::kF4; }

bool scales_fit(const StoredTensor& codes, const StoredTensor& scale, uint64_t group) {
  const uint64_t cols = code_cols(codes);
  return codes.shape.size() >= 2 && codes.shape.size() == scale.shape.size() &&
         same_stack(codes.shape, 1, scale.shape, 1) && cols % group == 0 && scale.shape.back() == cols / group;
}

bool refuse_shape(Claim* claim, const Fp4Names& names, const StoredTensor& codes, const StoredTensor& scale,
                  uint64_t group) {
  const uint64_t cols = code_cols(codes);
  Values values{{"columns", std::to_string(cols)}, {"group", std::to_string(group)}};
  if (cols % group != 0) {
    return claim->bad_shape(names.codes, names.scale, "the columns do not fill whole groups", std::move(values));
  }
  values.emplace_back("scale_columns_expected", std::to_string(cols / group));
  values.emplace_back("scale_columns_stored", scale.shape.empty() ? "none" : std::to_string(scale.shape.back()));
  return claim->bad_shape(
      names.scale, names.codes,
      "these scales do not go with the weight: one for each group of columns of each row, row by row, "
      "is needed; if the weight is a part of a larger one, cut its scales in the same way",
      std::move(values));
}

// One F32 for the matrix, or one for each matrix of the stack.
bool check_second(Claim* claim, std::string_view suffix, const StoredTensor& codes) {
  const StoredTensor* second = claim->get(suffix);
  uint64_t slices = 1;
  for (size_t i = 0; i + 2 < codes.shape.size(); ++i) slices *= codes.shape[i];
  const uint64_t count = element_count(*second);
  if (second->dtype == Dtype::kF32 && (count == 1 || count == slices)) return true;
  return claim->bad_shape(suffix, "", "a second-level scale must be F32, one for each matrix",
                          {{"matrices", std::to_string(slices)}, {"scales", std::to_string(count)}});
}

}  // namespace

bool looks_like_fp4(const StoredTensor& codes, const StoredTensor& scale) {
  if (!is_pair_type(codes.dtype)) return false;
  if (scale.dtype == Dtype::kF8E4M3) return true;
  return scale.dtype == Dtype::kF8E8M0 || (scale.dtype == Dtype::kU8 && scales_fit(codes, scale, 32));
}

bool claim_fp4_weight(Claim* claim, const Fp4Names& names, std::string weight_name) {
  const StoredTensor& codes = *claim->get(names.codes);
  const StoredTensor& scale = *claim->get(names.scale);
  const ScaleType type = scale_type_of(scale.dtype);
  if (!is_pair_type(codes.dtype) || (type != ScaleType::kE4M3 && type != ScaleType::kE8M0)) {
    return claim->bad_shape(
        names.scale, names.codes,
        "four-bit floats need codes of type U8, I8 or F4 and scales of type F8_E4M3, F8_E8M0 or U8");
  }
  const bool has_second = !names.second.empty() && claim->get(names.second) != nullptr;
  // U8 scales for 16 columns come from engines' own dumps, whose order inside the matrix is another one.
  if (scale.dtype == Dtype::kU8 && has_second) {
    claim->refuse("unsupported", names.scale,
                  "nvfp4 scales stored as U8 may be in the swizzled order of an engine's dump; export the checkpoint "
                  "with linear scales of type F8_E4M3");
    return false;
  }
  const bool two_level = type == ScaleType::kE4M3;
  const uint64_t group = two_level ? 16 : 32;
  if (!scales_fit(codes, scale, group)) return refuse_shape(claim, names, codes, scale, group);
  if (two_level) {
    if (names.second.empty()) {
      claim->refuse("unsupported", names.scale,
                    "E4M3 scales without a second-level scale are not known in this layout");
      return false;
    }
    if (!has_second) return claim->lacks(names.scale, names.second);
    if (!check_second(claim, names.second, codes)) return false;
  }
  std::vector<uint64_t> shape = codes.shape;
  shape.back() = code_cols(codes);
  claim->add(std::move(weight_name), two_level ? nvfp4_format() : mxfp4_format(), std::move(shape));
  claim->attach(PartKind::kCodes, names.codes);
  claim->attach(PartKind::kScales, names.scale);
  if (two_level) claim->attach(PartKind::kSecondScale, names.second);
  if (!names.input_scale.empty()) claim->attach(PartKind::kInputScale, names.input_scale);
  return true;
}

EncodedMatrix read_fp4_weight(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                              uint64_t rows, SecondLevel level) {
  EncodedMatrix out = read_canonical(checkpoint, weight, slice, row_begin, rows);
  if (const StoredTensor* second = stored_part(checkpoint, weight, PartKind::kSecondScale)) {
    out.tensor_scale = {level, read_float(checkpoint, *second, slice)};
  }
  return out;
}

}  // namespace nibble
