// NaN and infinity wherever they may stand, and scales below zero. One such value in one weight makes every output that
// passes it NaN, so all of these are errors. Scales of both signs are legal where the rule is to make the extreme of a
// block the one code that has no opposite (GGUF's containers, and some quantizers of offset codes): then nearly every
// block reaches it.
#include <fmt/format.h>

#include <cmath>

#include "nibble/verify/code_stats.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "non-finite";
constexpr const char* kWayOut = "fetch the file again, or make it again from its source";

void check_dense(const VerifyContext& context, size_t w, const WeightStats& stats, Findings* findings) {
  if (stats.nans + stats.infinities == 0) return;
  findings->push_back(
      part_finding(context, w, PartKind::kCodes, Severity::kError, kName,
                   fmt::format("{} NaN and {} infinite among {} values, the first at element {}: {}", stats.nans,
                               stats.infinities, stats.elements, stats.first_bad.value_or(0), kWayOut),
                   {{"nan", std::to_string(stats.nans)},
                    {"infinite", std::to_string(stats.infinities)},
                    {"values", std::to_string(stats.elements)},
                    {"first", std::to_string(stats.first_bad.value_or(0))}}));
}

void check_codes(const VerifyContext& context, size_t w, const WeightStats& stats, Findings* findings) {
  if (stats.code_histogram.size() != 256) return;
  const std::vector<float> values = code_values(context.model->table.weights()[w].format);
  uint64_t bad = 0;
  std::string codes;
  for (size_t c = 0; c < values.size(); ++c) {
    if (std::isfinite(values[c]) || stats.code_histogram[c] == 0) continue;
    bad += stats.code_histogram[c];
    codes += fmt::format("{}0x{:02X}", codes.empty() ? "" : ", ", c);
  }
  if (bad == 0) return;
  findings->push_back(
      part_finding(context, w, PartKind::kCodes, Severity::kError, kName,
                   fmt::format("{} of {} codes are no numbers ({}): {}", bad, stats.elements, codes, kWayOut),
                   {{"codes", codes}, {"count", std::to_string(bad)}, {"elements", std::to_string(stats.elements)}}));
}

bool signs_are_meant(const VerifyContext& context, size_t w, const WeightStats& stats) {
  const Format& format = context.model->table.weights()[w].format;
  if (code_shape(format) != CodeShape::kOffset || scale_type_bytes(format.scale) == 1) return false;
  if (context.checkpoint->container() == Container::kGguf) return true;
  const size_t extreme = stats.code_histogram.size() / 2;
  if (stats.blocks < 16 || stats.block_max_histogram.size() <= extreme) return false;
  const auto share = [](uint64_t part, uint64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  const double negative = share(stats.scales.negatives, stats.scales.count);
  return share(stats.block_max_histogram[extreme], stats.blocks) > 0.95 && negative > 0.2 && negative < 0.8;
}

void check_scales(const VerifyContext& context, size_t w, PartKind part, const ScaleStats& scales, const char* what,
                  Findings* findings) {
  const uint64_t bad = scales.nans + scales.infinities + scales.negatives;
  if (bad == 0) return;
  findings->push_back(part_finding(
      context, w, part, Severity::kError, kName,
      fmt::format("{} of {} {} are no usable scales: {} NaN, {} infinite, {} negative, the first at index {}: {}", bad,
                  scales.count, what, scales.nans, scales.infinities, scales.negatives, scales.first_bad.value_or(0),
                  kWayOut),
      {{"nan", std::to_string(scales.nans)},
       {"infinite", std::to_string(scales.infinities)},
       {"negative", std::to_string(scales.negatives)},
       {"scales", std::to_string(scales.count)},
       {"first", std::to_string(scales.first_bad.value_or(0))}}));
}

void check_second(const VerifyContext& context, size_t w, const WeightStats& stats, Findings* findings) {
  for (size_t slice = 0; slice < stats.second.size(); ++slice) {
    const float value = stats.second[slice];
    if (std::isfinite(value) && value >= 0) continue;
    findings->push_back(part_finding(context, w, PartKind::kSecondScale, Severity::kError, kName,
                                     fmt::format("the second-level scale is {}: {}", value, kWayOut),
                                     {{"value", fmt::format("{}", value)}, {"slice", std::to_string(slice)}}));
    return;  // one a weight says enough
  }
}

void check(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  for (size_t w = 0; w < weights.size(); ++w) {
    const WeightStats& stats = context.scan->weights[w];
    if (weights[w].opaque) continue;
    if (weights[w].format.is_dense()) {
      check_dense(context, w, stats, findings);
      continue;
    }
    check_codes(context, w, stats, findings);
    ScaleStats scales = stats.scales;
    if (scales.negatives != 0 && scales.nans + scales.infinities == 0 && signs_are_meant(context, w, stats))
      scales.negatives = 0;
    check_scales(context, w, PartKind::kScales, scales, "scales", findings);
    check_scales(context, w, PartKind::kInputScale, stats.input_scales, "activation scales", findings);
    check_second(context, w, stats, findings);
  }
}

}  // namespace

extern const Rule kNonFinite = {kName, "NaN and infinity in weights, codes and scales; negative scales", check};

}  // namespace nibble
