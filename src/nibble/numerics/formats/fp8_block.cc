// fp8-block: E4M3 elements, one scale for each 128 x 128 tile, tiles at the edges partial (the DeepSeek family). Other
// tile sizes, "fp8-blockRxC", are only read.
#include "nibble/numerics/format.h"
#include "nibble/numerics/formats/group_name.h"

namespace nibble {
namespace {

std::optional<Format> parse_128(std::string_view name) {
  if (name != "fp8-block") return std::nullopt;
  return Format{.name = std::string(name),
                .element = Element::kE4M3,
                .scale = ScaleType::kF32,
                .block_rows = 128,
                .block_cols = 128};
}

std::optional<Format> parse_sizes(std::string_view name) {
  constexpr std::string_view kPrefix = "fp8-block";
  const size_t times = name.find('x');
  if (!name.starts_with(kPrefix) || times == std::string_view::npos) return std::nullopt;
  const auto rows = parse_block_size(name.substr(kPrefix.size(), times - kPrefix.size()));
  const auto cols = parse_block_size(name.substr(times + 1));
  if (!rows || !cols) return std::nullopt;
  if (*rows == 128 && *cols == 128) return parse_128(kPrefix);  // one name for one format
  return Format{.name = std::string(name),
                .element = Element::kE4M3,
                .scale = ScaleType::kF32,
                .block_rows = *rows,
                .block_cols = *cols};
}

// Measured, see format_error_test.cc.
double typical_rel_rmse(const Format&) { return 0.02645; }

}  // namespace

extern const FormatFamily kFp8Block, kFp8BlockRxC;
const FormatFamily kFp8Block = {"fp8-block",     "FP8, a scale for each tile of 128 x 128", "fp8.amax", true, parse_128,
                                typical_rel_rmse};
const FormatFamily kFp8BlockRxC = {"fp8-blockRxC", "FP8, a scale for each tile of R x C (read only)",
                                   "fp8.amax",     false,
                                   parse_sizes,    typical_rel_rmse};

}  // namespace nibble
