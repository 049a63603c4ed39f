// Scales so large that nothing of the other weights is left beside them: beside a number 2^24 times as large they
// vanish in a sum of float32. A few blocks in a matrix, or a whole matrix among all others, are a damaged byte and no
// weights. The reverse, a block that nothing is left of, changes little: a note.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "scale-outlier";
constexpr double kFar = 0x1p24;

// At most one of so many, or one at all, and not all.
bool are_few(uint64_t count, uint64_t others, uint64_t one_of) {
  return count != 0 && others != 0 && count <= std::max<uint64_t>(1, (count + others) / one_of);
}
bool are_few(const OctaveCounts::Apart& apart, uint64_t one_of) { return are_few(apart.count, apart.others, one_of); }

// Returns whether some are above the others.
bool check_blocks(const VerifyContext& context, size_t w, const WeightStats& stats, Findings* findings) {
  const auto report = [&](const OctaveCounts::Apart& apart, Severity severity, const char* what) {
    findings->push_back(part_finding(
        context, w, PartKind::kScales, severity, kName,
        fmt::format("{} of {} blocks have scales {} octaves or more {}. Compare with the source (--against), or make "
                    "the file again from it",
                    apart.count, apart.count + apart.others, apart.octaves, what),
        {{"blocks", std::to_string(apart.count)},
         {"of", std::to_string(apart.count + apart.others)},
         {"octaves", std::to_string(apart.octaves)},
         {"largest_scale", short_number(stats.scales.max)},
         {"smallest_scale", short_number(stats.scales.min)}}));
  };
  if (const auto above = stats.extremes.blocks.above(); are_few(above, 64)) {
    report(above, Severity::kWarning, "above all others of the matrix, which vanish beside them: a damaged scale");
    return true;
  } else if (const auto below = stats.extremes.blocks.below(); are_few(below, 1024)) {
    report(below, Severity::kNote, "below all others of the matrix: nothing is left of them");
  }
  return false;
}

// Root mean square of a quantized weight under its smallest and its largest second-level scale.
struct Size {
  double least = 0, most = 0;
};
std::optional<Size> size_of(const Format& format, const WeightStats& stats) {
  const double plain = code_rms(format, stats) * stats.scales.geometric_mean();
  if (stats.scales.good == 0 || !(plain > 0)) return std::nullopt;
  Size size{plain, plain};
  bool first = true;
  for (const float second : stats.second) {
    if (!std::isfinite(second) || !(second > 0)) continue;
    const double wide = static_cast<double>(second);
    const double value = plain * (stats.level == SecondLevel::kDivide ? 1 / wide : wide);
    size.least = first ? value : std::min(size.least, value);
    size.most = first ? value : std::max(size.most, value);
    first = false;
  }
  return size;
}

void report_matrix(const VerifyContext& context, size_t w, double rms, double others, Findings* findings) {
  const WeightStats& stats = context.scan->weights[w];
  findings->push_back(part_finding(
      context, w, stats.second.empty() ? PartKind::kScales : PartKind::kSecondScale, Severity::kWarning, kName,
      fmt::format("the weight has a root mean square of {:.3g}, and no other matrix of the checkpoint has more than "
                  "{:.3g}: a damaged scale. Compare with the source (--against), or make the file again from it",
                  rms, others),
      {{"rms", short_number(rms)}, {"others", short_number(others)}}));
}

// Matrices among each other; slices of a stack, which have one mean scale here, by their second level. `told`: weights
// of which it has been said.
void check_matrices(const VerifyContext& context, const std::set<size_t>& told, Findings* findings) {
  const auto& weights = context.model->table.weights();
  std::vector<std::pair<double, size_t>> sizes;
  double dense = 0;
  double others = 0;
  for (size_t w = 0; w < weights.size(); ++w) {
    const WeightStats& stats = context.scan->weights[w];
    if (weights[w].opaque || weights[w].shape.size() < 2 || told.contains(w)) continue;
    if (weights[w].format.is_dense()) {
      dense = std::max(dense, stats.dense_rms());
    } else if (const auto size = size_of(weights[w].format, stats)) {
      sizes.emplace_back(size->most, w);
      // The least of a stack's slices is one of the others for its largest.
      if (size->least < size->most) others = std::max(others, size->least);
    }
  }
  others = std::max(others, dense);
  std::ranges::sort(sizes);
  // Up to the first that lies far above all before it.
  size_t above = 0;
  while (above < sizes.size() && (others <= 0 || sizes[above].first <= others * kFar)) {
    others = std::max(others, sizes[above].first);
    ++above;
  }
  // Without matrices that have no scales it may be those below that are the exception.
  if (dense <= 0 && !are_few(sizes.size() - above, above, 64)) return;
  for (size_t i = above; i < sizes.size(); ++i) {
    if (!is_proved(context, sizes[i].second)) report_matrix(context, sizes[i].second, sizes[i].first, others, findings);
  }
}

void check(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  std::set<size_t> told;
  for (size_t w = 0; w < weights.size(); ++w) {
    if (weights[w].opaque || weights[w].format.is_dense() || (*context.proofs)[w] == Proof::kRecorded) continue;
    const WeightStats& stats = context.scan->weights[w];
    // What is infinite is said by another rule.
    if (stats.extremes.overflows != 0 || check_blocks(context, w, stats, findings)) told.insert(w);
  }
  check_matrices(context, told, findings);
}

}  // namespace

extern const Rule kScaleOutlier = {kName, "scales far beyond all others", check};

}  // namespace nibble
