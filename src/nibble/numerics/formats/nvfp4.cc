// nvfp4: E2M1 elements, an E4M3 scale for each 16 columns and one float32 scale for the matrix.
#include "nibble/numerics/format.h"

namespace nibble {
namespace {

std::optional<Format> parse(std::string_view name) {
  if (name != "nvfp4") return std::nullopt;
  return Format{.name = std::string(name),
                .element = Element::kE2M1,
                .scale = ScaleType::kE4M3,
                .block_cols = 16,
                .two_level = true};
}

// Measured, see format_error_test.cc.
double typical_rel_rmse(const Format&) { return 0.0951; }

}  // namespace

extern const FormatFamily kNvfp4;
const FormatFamily kNvfp4 = {"nvfp4",        "FP4, an FP8 scale for each 16 columns and one for the matrix",
                             "nv.two_level", true,
                             parse,          typical_rel_rmse};

}  // namespace nibble
