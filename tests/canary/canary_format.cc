// A format as somebody would add one: data, and what --help says about it.
#include "nibble/numerics/format.h"

namespace nibble {
namespace {

std::optional<Format> parse(std::string_view name) {
  if (name != "canary") return std::nullopt;
  return Format{.name = std::string(name), .element = Element::kInt4, .scale = ScaleType::kE8M0, .block_cols = 32};
}

double typical_rel_rmse(const Format& /*format*/) { return 0.13; }

}  // namespace

extern const FormatFamily kCanaryFormat;
const FormatFamily kCanaryFormat = {
    "canary", "INT4, a power-of-two scale for each 32 columns", "canary.amax", true, parse, typical_rel_rmse};

}  // namespace nibble
