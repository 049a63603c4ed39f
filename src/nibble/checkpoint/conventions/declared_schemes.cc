#include "nibble/checkpoint/conventions/declared_schemes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/checkpoint/conventions/byte_weights.h"
#include "nibble/checkpoint/conventions/stored_formats.h"

namespace nibble {
namespace {

constexpr uint64_t kMxBlock = 32, kNvBlock = 16;

Format fp8_format(const ScaleGrid& grid, ScaleType scale) { return byte_format(Element::kE4M3, grid, scale); }

Format mxfp8_format() { return fp8_format({1, kMxBlock}, ScaleType::kE8M0); }

bool is_e8m0(const QuantGroup& group) {
  return group.scale_dtype.ends_with("uint8") || group.scale_dtype.ends_with("e8m0fnu") ||
         group.format.starts_with("mxfp");
}

// Everything of a group that decides its format, for messages.
std::string shown(const QuantGroup& group) {
  return fmt::format("type {}, num_bits {}, strategy {}, group_size {}, block {}x{}, scale_dtype {}, format {}",
                     group.type.empty() ? "-" : group.type, group.bits, group.strategy.empty() ? "-" : group.strategy,
                     group.group_size ? std::to_string(*group.group_size) : "-", group.block_rows, group.block_cols,
                     group.scale_dtype.empty() ? "-" : group.scale_dtype, group.format.empty() ? "-" : group.format);
}

// A missing strategy follows from the sizes, as the reference has it.
std::string strategy_of(const QuantGroup& group) {
  if (!group.strategy.empty()) return group.strategy;
  if (group.block_rows != 0) return "block";
  if (!group.group_size) return "tensor";
  return *group.group_size == -1 ? "channel" : "group";
}

std::optional<Format> integer_format(const QuantGroup& group, const std::string& strategy) {
  if (group.bits != 4 && group.bits != 8) return std::nullopt;
  const bool zeros = group.symmetric == false;
  if (strategy == "group" && group.group_size && *group.group_size > 0)
    return int_format(group.bits, static_cast<uint64_t>(*group.group_size), ScaleType::kBF16, zeros);
  if (strategy == "channel") return int_format(group.bits, 0, ScaleType::kBF16, zeros);
  if (strategy == "tensor" && group.bits == 8)
    return byte_format(Element::kInt8, {0, 0}, zeros ? ScaleType::kF32 : ScaleType::kBF16, zeros);
  return std::nullopt;
}

std::optional<Format> float_format(const QuantGroup& group, const std::string& strategy) {
  const bool groups = strategy == "group" || strategy == "tensor_group";
  const uint64_t size = group.group_size && *group.group_size > 0 ? static_cast<uint64_t>(*group.group_size) : 0;
  if (group.bits == 4) {
    if (groups && size == kMxBlock) return mxfp4_format();
    if (groups && size == kNvBlock && !is_e8m0(group)) return nvfp4_format();
    return std::nullopt;
  }
  if (group.bits != 8) return std::nullopt;
  if (strategy == "tensor") return fp8_format({0, 0}, ScaleType::kF32);
  if (strategy == "channel") return fp8_format({1, 0}, ScaleType::kBF16);
  if (strategy == "block" && group.block_rows != 0)
    return fp8_format({group.block_rows, group.block_cols}, ScaleType::kBF16);
  if (!groups || size == 0) return std::nullopt;
  if (is_e8m0(group)) return size == kMxBlock ? std::optional(mxfp8_format()) : std::nullopt;
  return fp8_format({1, size}, ScaleType::kBF16);
}

}  // namespace

Error unknown_setting(const std::string& source, const std::string& key, const std::string& value) {
  return Error("the quantization settings say something that is not known here, so that bytes cannot be counted")
      .file(source)
      .value("key", key)
      .value("value", value)
      .way_out("correct the setting if it is a slip")
      .way_out("take it out of a copy of the configuration, which then counts as unquantized")
      .way_out("use a release of nibble that knows it");
}

Format group_format(const QuantGroup& group, const std::string& source) {
  const std::string strategy = strategy_of(group);
  std::optional<Format> format;
  if (group.type == "int") format = integer_format(group, strategy);
  if (group.type == "float") format = float_format(group, strategy);
  if (!format) throw unknown_setting(source, "config_groups." + group.name, shown(group));
  return *format;
}

Format algorithm_format(const std::string& algorithm, std::optional<int64_t> group_size, const std::string& key,
                        const std::string& source) {
  constexpr std::array<std::string_view, 3> kNv = {"NVFP4", "W4A16_NVFP4", "W4A8_NVFP4_FP8"};
  const auto check_group = [&](uint64_t wanted) {
    if (group_size && *group_size != static_cast<int64_t>(wanted))
      throw unknown_setting(source, key, fmt::format("{} with group_size {}", algorithm, *group_size));
  };
  if (std::ranges::find(kNv, algorithm) != kNv.end()) {
    check_group(kNvBlock);
    return nvfp4_format();
  }
  if (algorithm == "MXFP4" || algorithm == "W4A8_MXFP4_FP8") {
    check_group(kMxBlock);
    return mxfp4_format();
  }
  if (algorithm == "MXFP8") {
    check_group(kMxBlock);
    return mxfp8_format();
  }
  if (algorithm == "FP8") return fp8_format({0, 0}, ScaleType::kF32);
  if (algorithm == "FP8_PER_CHANNEL_PER_TOKEN") return fp8_format({1, 0}, ScaleType::kF32);
  if (algorithm == "FP8_PB_WO") return fp8_format({kUsualBlock.first, kUsualBlock.second}, ScaleType::kF32);
  throw unknown_setting(source, key, algorithm);
}

// The reader takes scales as they are stored: one byte beside DeepSeek-V4's `X.scale`, float32 beside the
// `X.weight_scale_inv` of V3.1 and V3.2. Both say ue8m0 of them, but only V4's configurations have an expert_dtype.
Format eight_bit_format(const QuantHints& hints) {
  if (!hints.element_format.empty() && hints.element_format.find("e4m3") == std::string::npos)
    throw unknown_setting(hints.source, "fmt", hints.element_format);
  if (!hints.scale_format.empty() && hints.scale_format != "ue8m0")
    throw unknown_setting(hints.source, "scale_fmt", hints.scale_format);
  if (hints.method == "mxfp8") {
    const bool usual = hints.block_rows == 0 || (hints.block_rows == 1 && hints.block_cols == kMxBlock);
    if (usual) return mxfp8_format();
    throw unknown_setting(hints.source, "weight_block_size",
                          fmt::format("{}x{} with mxfp8", hints.block_rows, hints.block_cols));
  }
  const bool bytes = hints.scale_format == "ue8m0" && !hints.expert_dtype.empty();
  const ScaleType scale = bytes ? ScaleType::kE8M0 : ScaleType::kF32;
  if (hints.block_rows != 0) return fp8_format({hints.block_rows, hints.block_cols}, scale);
  // MiMo-V2.6 leaves the block out; the releases before it, in the same layout, say 128 x 128.
  if (!hints.store_dtype.empty()) return fp8_format({kUsualBlock.first, kUsualBlock.second}, scale);
  return fp8_format({0, 0}, ScaleType::kF32);
}

bool leaves_blocks_open(const QuantHints& hints) {
  return hints.method == "fp8" && hints.block_rows == 0 && hints.algorithm.empty() && hints.store_dtype.empty();
}

std::optional<Format> expert_format(const QuantHints& hints) {
  if (!hints.store_dtype.empty()) {
    if (hints.store_dtype != "mxfp4") throw unknown_setting(hints.source, "store_dtype", hints.store_dtype);
    return mxfp4_format();
  }
  if (hints.expert_dtype.empty() || hints.expert_dtype == "fp8") return std::nullopt;
  if (hints.expert_dtype != "fp4") throw unknown_setting(hints.source, "expert_dtype", hints.expert_dtype);
  return mxfp4_format();
}

// Zero points are always stored, also where all are the same. GPTQ's order of the columns, four bytes each, belongs to
// no format and is not counted.
Format word_packed_format(const QuantHints& hints) {
  if (hints.bits != 4 && hints.bits != 8) throw unknown_setting(hints.source, "bits", std::to_string(hints.bits));
  if (!hints.group_size) throw unknown_setting(hints.source, "group_size", "missing");
  const uint64_t group = *hints.group_size == -1 ? 0 : static_cast<uint64_t>(*hints.group_size);
  return int_format(hints.bits, group, ScaleType::kF16, true);
}

}  // namespace nibble
