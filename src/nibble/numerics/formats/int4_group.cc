// int4-gN: signed 4-bit integers, one float scale for each N columns (compressed-tensors pack-quantized, symmetric).
#include "nibble/numerics/format.h"
#include "nibble/numerics/formats/group_name.h"
#include "nibble/numerics/formats/typical_error.h"

namespace nibble {
namespace {

std::optional<Format> parse(std::string_view name) {
  const auto group = parse_group_name(name, "int4-g", "");
  if (!group) return std::nullopt;
  return Format{.name = std::string(name), .element = Element::kInt4, .scale = ScaleType::kBF16, .block_cols = *group};
}

double typical_rel_rmse(const Format& format) {
  return error_at_group(format.block_cols, {{16, 0.0869},
                                            {32, 0.0948},
                                            {64, 0.1027},
                                            {128, 0.1107},
                                            {256, 0.1186},
                                            {512, 0.1262},
                                            {1024, 0.1335},
                                            {4096, 0.1474}});
}

}  // namespace

extern const FormatFamily kInt4Group;
const FormatFamily kInt4Group = {"int4-gN",       "INT4, a scale for each N columns", "int4.amax7_5", true, parse,
                                 typical_rel_rmse};

}  // namespace nibble
