// Byte formats that checkpoints hold and nobody should write: e4m3 (values that stand for themselves), fp8-gN and
// int8-tensor.
#include "nibble/numerics/format.h"
#include "nibble/numerics/formats/group_name.h"
#include "nibble/numerics/formats/typical_error.h"

namespace nibble {
namespace {

std::optional<Format> parse_e4m3(std::string_view name) {
  if (name != "e4m3") return std::nullopt;
  return Format{.name = std::string(name), .element = Element::kE4M3};
}

std::optional<Format> parse_group(std::string_view name) {
  const auto group = parse_group_name(name, "fp8-g", "");
  if (!group) return std::nullopt;
  return Format{.name = std::string(name), .element = Element::kE4M3, .scale = ScaleType::kF32, .block_cols = *group};
}

std::optional<Format> parse_int8_tensor(std::string_view name) {
  if (name != "int8-tensor") return std::nullopt;
  return Format{
      .name = std::string(name), .element = Element::kInt8, .scale = ScaleType::kF32, .block_rows = 0, .block_cols = 0};
}

}  // namespace

extern const FormatFamily kE4m3, kFp8Group, kInt8Tensor;
const FormatFamily kE4m3 = {"e4m3", "FP8 E4M3 without scales (read only)", "", false, parse_e4m3, no_error};
const FormatFamily kFp8Group = {"fp8-gN", "FP8, a scale for each N columns (read only)", "", false, parse_group,
                                no_error};
const FormatFamily kInt8Tensor = {
    "int8-tensor", "INT8, one scale for the matrix (read only)", "", false, parse_int8_tensor, no_error};

}  // namespace nibble
