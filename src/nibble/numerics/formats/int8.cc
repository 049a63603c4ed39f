// int8-gN (GGUF's Q8_0 is int8-g32 with binary16 scales) and int8-channel: signed bytes. Read only.
#include "nibble/numerics/format.h"
#include "nibble/numerics/formats/group_name.h"
#include "nibble/numerics/formats/typical_error.h"

namespace nibble {
namespace {

std::optional<Format> parse_group(std::string_view name) {
  const auto group = parse_group_name(name, "int8-g", "");
  if (!group) return std::nullopt;
  return Format{.name = std::string(name), .element = Element::kInt8, .scale = ScaleType::kF16, .block_cols = *group};
}

std::optional<Format> parse_channel(std::string_view name) {
  if (name != "int8-channel") return std::nullopt;
  return Format{.name = std::string(name), .element = Element::kInt8, .scale = ScaleType::kBF16, .block_cols = 0};
}

double group_rel_rmse(const Format& format) {
  return error_at_group(format.block_cols,
                        {{16, 0.00470}, {32, 0.00535}, {128, 0.00647}, {1024, 0.00786}, {4096, 0.00870}});
}
// Rows of 4096 columns.
double channel_rel_rmse(const Format&) { return 0.00870; }

}  // namespace

extern const FormatFamily kInt8Group, kInt8Channel;
const FormatFamily kInt8Group = {
    "int8-gN", "INT8, a scale for each N columns (read only)", "int8.amax", false, parse_group, group_rel_rmse};
const FormatFamily kInt8Channel = {
    "int8-channel", "INT8, a scale for each row (read only)", "int8.amax", false, parse_channel, channel_rel_rmse};

}  // namespace nibble
