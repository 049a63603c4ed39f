// Formats without scales: the elements as they are. Only bf16 is a target of `quantize`.
#include "nibble/numerics/format.h"
#include "nibble/numerics/formats/typical_error.h"

namespace nibble {
namespace {

template <Element kElement>
std::optional<Format> parse_dense(std::string_view name) {
  if (name != element_name(kElement)) return std::nullopt;
  return Format{.name = std::string(name), .element = kElement};
}

}  // namespace

extern const FormatFamily kBf16, kF16, kF32, kF64, kE5m2;
const FormatFamily kBf16 = {"bf16", "bfloat16, 16 bits", "", true, parse_dense<Element::kBF16>, no_error};
const FormatFamily kF16 = {"f16", "IEEE binary16 (read only)", "", false, parse_dense<Element::kF16>, no_error};
const FormatFamily kF32 = {"f32", "IEEE binary32 (read only)", "", false, parse_dense<Element::kF32>, no_error};
const FormatFamily kF64 = {"f64", "IEEE binary64 (read only)", "", false, parse_dense<Element::kF64>, no_error};
const FormatFamily kE5m2 = {"e5m2", "FP8 E5M2 without scales (read only)", "",
                            false,  parse_dense<Element::kE5M2>,           no_error};

}  // namespace nibble
