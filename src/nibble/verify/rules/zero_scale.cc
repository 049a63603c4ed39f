// Scales of zero. A float scale of zero is never written by a sound producer, except by those whose container says so
// (GGUF writes it for a block of zeros), and a second-level scale of zero erases a matrix: errors. A zero block scale
// under a second level is legal; with codes that are not zero it means that the scale has underflowed: a warning. E8M0
// has no zero: a tensor of scales that nobody filled is all 2^-127 there.
#include <fmt/format.h>

#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "zero-scale";

void check_second(const VerifyContext& context, size_t w, const WeightStats& stats, Findings* findings) {
  uint64_t zeros = 0;
  for (const float value : stats.second) zeros += value == 0 ? 1 : 0;
  if (zeros == 0) return;
  findings->push_back(part_finding(
      context, w, PartKind::kSecondScale, Severity::kError, kName,
      fmt::format("{} of {} second-level scales are zero, which erases the matrix: make the file again from its source",
                  zeros, stats.second.size()),
      {{"zeros", std::to_string(zeros)}, {"scales", std::to_string(stats.second.size())}}));
}

void check_block_scales(const VerifyContext& context, size_t w, const WeightStats& stats, Findings* findings) {
  const Format& format = context.model->table.weights()[w].format;
  const bool float_scale = scale_type_bytes(format.scale) > 1;
  if (float_scale && stats.scales.zeros != 0 && context.checkpoint->container() != Container::kGguf) {
    findings->push_back(part_finding(
        context, w, PartKind::kScales, Severity::kError, kName,
        fmt::format("{} of {} scales are zero; readers divide by them or lose the block: make the file again from its "
                    "source",
                    stats.scales.zeros, stats.scales.count),
        {{"zeros", std::to_string(stats.scales.zeros)}, {"scales", std::to_string(stats.scales.count)}}));
    return;
  }
  const bool all_smallest = format.scale == ScaleType::kE8M0 && stats.scales.good == stats.scales.count &&
                            stats.scales.count != 0 && stats.scales.max == 0x1p-127;
  if (all_smallest && stats.zeros < stats.elements) {
    findings->push_back(part_finding(
        context, w, PartKind::kScales, Severity::kError, kName,
        fmt::format(
            "all {} scales are the byte 0, which means 2^-127, and the codes are not zero: the scales were never "
            "filled. Make the file again from its source",
            stats.scales.count),
        {{"scales", std::to_string(stats.scales.count)}}));
    return;
  }
  if (stats.dead_blocks == 0) return;
  findings->push_back(part_finding(
      context, w, PartKind::kScales, Severity::kWarning, kName,
      fmt::format(
          "{} of {} blocks have scale zero but codes that are not: they decode to zero. The scale has "
          "underflowed; quantize again with a second-level scale that brings the largest block scale to the top "
          "of its range",
          stats.dead_blocks, stats.blocks),
      {{"blocks", std::to_string(stats.dead_blocks)}, {"of", std::to_string(stats.blocks)}}));
}

void check(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  for (size_t w = 0; w < weights.size(); ++w) {
    const WeightStats& stats = context.scan->weights[w];
    if (weights[w].opaque || weights[w].format.is_dense()) continue;
    check_second(context, w, stats, findings);
    check_block_scales(context, w, stats, findings);
    if (stats.input_scales.zeros == 0) continue;
    findings->push_back(part_finding(context, w, PartKind::kInputScale, Severity::kError, kName,
                                     "the activation scale is zero: activations are divided by it. Calibrate again, "
                                     "with a floor for inputs that were all zero",
                                     {{"zeros", std::to_string(stats.input_scales.zeros)}}));
  }
}

}  // namespace

extern const Rule kZeroScale = {kName, "scales of zero", check};

}  // namespace nibble
