// int4-channel[-asym]: 4-bit integers with one scale (and zero point) for a whole output row. Read only: nibble writes
// groups, which cost 0.03 to 0.25 bits a weight more and lose far less.
#include "nibble/numerics/format.h"
#include "nibble/numerics/formats/typical_error.h"

namespace nibble {
namespace {

std::optional<Format> parse_symmetric(std::string_view name) {
  if (name != "int4-channel") return std::nullopt;
  return Format{.name = std::string(name), .element = Element::kInt4, .scale = ScaleType::kBF16, .block_cols = 0};
}

std::optional<Format> parse_asymmetric(std::string_view name) {
  if (name != "int4-channel-asym") return std::nullopt;
  return Format{.name = std::string(name),
                .element = Element::kInt4,
                .scale = ScaleType::kBF16,
                .block_cols = 0,
                .zero = ZeroPoint::kCode};
}

// Rows of 4096 columns.
double symmetric_rel_rmse(const Format&) { return 0.1474; }
double asymmetric_rel_rmse(const Format&) { return 0.1401; }

}  // namespace

extern const FormatFamily kInt4Channel, kInt4ChannelAsym;
const FormatFamily kInt4Channel = {"int4-channel",  "INT4, a scale for each row (read only)",
                                   "int4.amax7_5",  false,
                                   parse_symmetric, symmetric_rel_rmse};
const FormatFamily kInt4ChannelAsym = {"int4-channel-asym", "INT4, a scale and a zero point for each row (read only)",
                                       "int4.asym",         false,
                                       parse_asymmetric,    asymmetric_rel_rmse};

}  // namespace nibble
