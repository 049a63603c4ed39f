// int8-gN-asym, int8-channel-asym and int8-tensor-asym: signed bytes with a scale and a signed zero point
// (compressed-tensors and GPTQ of 8 bits). Read only.
#include "nibble/numerics/format.h"
#include "nibble/numerics/formats/group_name.h"
#include "nibble/numerics/formats/typical_error.h"

namespace nibble {
namespace {

constexpr uint64_t kBlockBits = 16 + 8;  // binary16 or bfloat16 scale and a byte of zero point

std::optional<Format> parse_group(std::string_view name) {
  const auto group = parse_group_name(name, "int8-g", "-asym");
  if (!group) return std::nullopt;
  return Format{.name = std::string(name),
                .element = Element::kInt8,
                .scale = ScaleType::kF16,
                .block_cols = *group,
                .zero = ZeroPoint::kCode,
                .container_block_bits = kBlockBits};
}

std::optional<Format> parse_channel(std::string_view name) {
  if (name != "int8-channel-asym") return std::nullopt;
  return Format{.name = std::string(name),
                .element = Element::kInt8,
                .scale = ScaleType::kF16,
                .block_cols = 0,
                .zero = ZeroPoint::kCode,
                .container_block_bits = kBlockBits};
}

std::optional<Format> parse_tensor(std::string_view name) {
  if (name != "int8-tensor-asym") return std::nullopt;
  return Format{.name = std::string(name),
                .element = Element::kInt8,
                .scale = ScaleType::kF16,
                .block_rows = 0,
                .block_cols = 0,
                .zero = ZeroPoint::kCode,
                .container_block_bits = kBlockBits};
}

}  // namespace

extern const FormatFamily kInt8GroupAsym, kInt8ChannelAsym, kInt8TensorAsym;
const FormatFamily kInt8GroupAsym = {
    "int8-gN-asym", "INT8, a scale and a zero point for each N columns (read only)", "", false, parse_group, no_error};
const FormatFamily kInt8ChannelAsym = {
    "int8-channel-asym", "INT8, a scale and a zero point for each row (read only)", "", false, parse_channel, no_error};
const FormatFamily kInt8TensorAsym = {
    "int8-tensor-asym", "INT8, one scale and zero point for the matrix (read only)", "", false, parse_tensor, no_error};

}  // namespace nibble
