// fp8-channel and fp8-tensor: E4M3 elements, one scale for each output row or for the whole matrix.
#include "nibble/numerics/format.h"

namespace nibble {
namespace {

std::optional<Format> parse_channel(std::string_view name) {
  if (name != "fp8-channel") return std::nullopt;
  return Format{.name = std::string(name), .element = Element::kE4M3, .scale = ScaleType::kF32, .block_cols = 0};
}

std::optional<Format> parse_tensor(std::string_view name) {
  if (name != "fp8-tensor") return std::nullopt;
  return Format{
      .name = std::string(name), .element = Element::kE4M3, .scale = ScaleType::kF32, .block_rows = 0, .block_cols = 0};
}

// Measured, see format_error_test.cc.
double typical_rel_rmse(const Format&) { return 0.02645; }

}  // namespace

extern const FormatFamily kFp8Channel, kFp8Tensor;
const FormatFamily kFp8Channel = {"fp8-channel",   "FP8, a scale for each row", "fp8.amax", true, parse_channel,
                                  typical_rel_rmse};
const FormatFamily kFp8Tensor = {"fp8-tensor",    "FP8, one scale for the matrix", "fp8.amax", true, parse_tensor,
                                 typical_rel_rmse};

}  // namespace nibble
