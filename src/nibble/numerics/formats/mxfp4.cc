// mxfp4: E2M1 elements, a power of two for each 32 columns (OCP MX, gpt-oss, DeepSeek-V4 experts).
#include "nibble/numerics/format.h"

namespace nibble {
namespace {

std::optional<Format> parse(std::string_view name) {
  if (name != "mxfp4") return std::nullopt;
  return Format{.name = std::string(name), .element = Element::kE2M1, .scale = ScaleType::kE8M0, .block_cols = 32};
}

// Measured, see format_error_test.cc.
double typical_rel_rmse(const Format&) { return 0.1123; }

}  // namespace

extern const FormatFamily kMxfp4;
const FormatFamily kMxfp4 = {"mxfp4",         "FP4, a power-of-two scale for each 32 columns", "mx.even", true, parse,
                             typical_rel_rmse};

}  // namespace nibble
