// int4-gN-asym: 4-bit integers with a scale and a zero point for each N columns (compressed-tensors asymmetric, GPTQ,
// AWQ). value = (code - zero) * scale.
#include "nibble/numerics/format.h"
#include "nibble/numerics/formats/group_name.h"
#include "nibble/numerics/formats/typical_error.h"

namespace nibble {
namespace {

std::optional<Format> parse(std::string_view name) {
  const auto group = parse_group_name(name, "int4-g", "-asym");
  if (!group) return std::nullopt;
  return Format{.name = std::string(name),
                .element = Element::kInt4,
                .scale = ScaleType::kBF16,
                .block_cols = *group,
                .zero = ZeroPoint::kCode};
}

double typical_rel_rmse(const Format& format) {
  return error_at_group(format.block_cols, {{16, 0.0695},
                                            {32, 0.0808},
                                            {64, 0.0910},
                                            {128, 0.1005},
                                            {256, 0.1093},
                                            {512, 0.1176},
                                            {1024, 0.1255},
                                            {4096, 0.1401}});
}

}  // namespace

extern const FormatFamily kInt4GroupAsym;
const FormatFamily kInt4GroupAsym = {
    "int4-gN-asym", "INT4, a scale and a zero point for each N columns", "int4.asym", true, parse, typical_rel_rmse};

}  // namespace nibble
