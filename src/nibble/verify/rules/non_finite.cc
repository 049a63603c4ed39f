// NaN and infinity wherever they may stand, and scales below zero. One such value in one weight makes every output that
// passes it NaN, so all of these are errors. Scales below zero are legal where the rule is to make the extreme of a
// block the one code that has no opposite (GGUF's containers, and some quantizers of offset codes): then every block
// that is not zero reaches it, those under a negative scale without exception. With zero points or minima no rule gives
// one: there a scale is a part of the distance between the ends of its block. Codes and scales that are numbers can
// still have products that are none, in float32 or in the 16 bits that engines compute with.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "nibble/base/error.h"
#include "nibble/numerics/scale_rule.h"
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

// Does the rule of this name give the scale the sign of the extreme?
bool gives_signs(const std::string& rule, const Format& format) {
  try {
    return parse_rule(rule, format).rule->needs == BlockStatsNeeded::kExtreme;
  } catch (const Error&) {
    return false;  // unknown here, or of another format
  }
}

// Which weights' negative scales are meant.
class MeantSigns {
 public:
  explicit MeantSigns(const VerifyContext& context) : context_(context), weights_(context.model->table.weights()) {
    if (context.manifest != nullptr) {
      for (const RecordedTensor& tensor : context.manifest->tensors) {
        if (!tensor.rule.empty()) rules_.emplace(tensor.name, &tensor.rule);
      }
    }
    verdicts_.resize(weights_.size(), Verdict::kFaulty);
    for (size_t w = 0; w < weights_.size(); ++w) {
      if (context.scan->weights[w].scales.negatives == 0 || !may_have_signs(w)) continue;
      verdicts_[w] = judge(w);
      seen_meant_ = seen_meant_ || verdicts_[w] == Verdict::kMeant;
      seen_faulty_ = seen_faulty_ || verdicts_[w] == Verdict::kFaulty;
    }
  }

  bool contains(size_t w) const {
    // Of a weight that was not sampled the others tell.
    return verdicts_[w] == Verdict::kUnseen ? seen_meant_ && !seen_faulty_ : verdicts_[w] == Verdict::kMeant;
  }

 private:
  enum class Verdict : uint8_t { kMeant, kFaulty, kUnseen };

  bool may_have_signs(size_t w) const {
    const Format& format = weights_[w].format;
    return !weights_[w].opaque && !format.is_dense() && code_shape(format) == CodeShape::kOffset &&
           format.zero == ZeroPoint::kNone && scale_type_bytes(format.scale) != 1;
  }

  Verdict judge(size_t w) const {
    const WeightStats& stats = context_.scan->weights[w];
    const Proof proof = (*context_.proofs)[w];
    if (context_.checkpoint->container() == Container::kGguf || proof == Proof::kRecorded) return Verdict::kMeant;
    // A few such blocks are too small a part of the weight for a comparison to tell.
    if (stats.negative_short_blocks != 0) return Verdict::kFaulty;
    if (proof != Proof::kNone) return Verdict::kMeant;
    const auto rule = rules_.find(weights_[w].name);
    if (rule != rules_.end() && gives_signs(*rule->second, weights_[w].format)) return Verdict::kMeant;
    const size_t extreme = stats.code_histogram.size() / 2;
    const uint64_t live = stats.blocks == 0 ? 0 : stats.blocks - stats.block_max_histogram[0];
    if (live == 0) return stats.sampled ? Verdict::kUnseen : Verdict::kFaulty;
    const auto full = static_cast<double>(stats.block_max_histogram[extreme]);
    return full > 0.95 * static_cast<double>(live) ? Verdict::kMeant : Verdict::kFaulty;
  }

  const VerifyContext& context_;
  const std::vector<Weight>& weights_;
  std::unordered_map<std::string_view, const std::string*> rules_;
  std::vector<Verdict> verdicts_;  // of weights with scales below zero
  bool seen_meant_ = false, seen_faulty_ = false;
};

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

void check_products(const VerifyContext& context, size_t w, const WeightStats& stats, Findings* findings) {
  // A scale of zero that is divided by is another rule's.
  if (stats.extremes.overflows == 0 || std::ranges::find(stats.second, 0.0f) != stats.second.end()) return;
  const uint64_t first = stats.extremes.first_overflow.value_or(0);
  findings->push_back(part_finding(
      context, w, PartKind::kScales, Severity::kError, kName,
      fmt::format("{} of {} weights, the first is element {}, are beyond what 16 bits hold (3.39e38): code times scale "
                  "is infinite. {}",
                  stats.extremes.overflows, stats.elements, first, kWayOut),
      {{"overflows", std::to_string(stats.extremes.overflows)},
       {"elements", std::to_string(stats.elements)},
       {"first", std::to_string(first)},
       {"largest_scale", short_number(stats.scales.max)}}));
}

void check(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  const MeantSigns meant(context);
  for (size_t w = 0; w < weights.size(); ++w) {
    const WeightStats& stats = context.scan->weights[w];
    if (weights[w].opaque) continue;
    if (weights[w].format.is_dense()) {
      check_dense(context, w, stats, findings);
      continue;
    }
    const size_t before = findings->size();
    check_codes(context, w, stats, findings);
    ScaleStats scales = stats.scales;
    if (scales.negatives != 0 && scales.nans + scales.infinities == 0 && meant.contains(w)) scales.negatives = 0;
    check_scales(context, w, PartKind::kScales, scales, "scales", findings);
    check_scales(context, w, PartKind::kInputScale, stats.input_scales, "activation scales", findings);
    check_second(context, w, stats, findings);
    if (findings->size() == before) check_products(context, w, stats, findings);  // else it is said already
  }
}

}  // namespace

extern const Rule kNonFinite = {kName, "NaN and infinity in weights, codes, scales and their products; negative scales",
                                check};

}  // namespace nibble
