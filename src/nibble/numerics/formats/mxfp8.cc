// mxfp8: E4M3 elements, a power of two for each 32 columns.
#include "nibble/numerics/format.h"

namespace nibble {
namespace {

std::optional<Format> parse(std::string_view name) {
  if (name != "mxfp8") return std::nullopt;
  return Format{.name = std::string(name), .element = Element::kE4M3, .scale = ScaleType::kE8M0, .block_cols = 32};
}

// Measured, see format_error_test.cc.
double typical_rel_rmse(const Format&) { return 0.02795; }

}  // namespace

extern const FormatFamily kMxfp8;
const FormatFamily kMxfp8 = {"mxfp8",         "FP8, a power-of-two scale for each 32 columns", "mx.even", true, parse,
                             typical_rel_rmse};

}  // namespace nibble
