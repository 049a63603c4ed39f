// What is worse than its format explains. The expected error is measured on BASE's own rows (against.h); a matrix is
// reported when its relative error exceeds 1.5 times that plus 0.02, which leaves room for other scale rules and for
// calibrated methods that trade weight error for output error. A matrix in BASE's own format is expected to be equal.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "nibble/verify/matrix_map.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "against";
constexpr double kFactor = 1.5;
constexpr double kRoundedMargin = 0.02;
constexpr double kDenseMargin = 1e-6;

double limit_of(const AgainstRow& row) {
  if (!row.rounded) return kDenseMargin;
  // A margin for rules would hide everything where the format itself adds next to nothing.
  return kFactor * row.expected_rel_rmse + std::min(kRoundedMargin, row.expected_rel_rmse + kDenseMargin);
}

struct LayerTally {
  uint64_t bad = 0, all = 0;
  double worst = 0, expected = 0;
};

FindingValues values_of(const AgainstRow& row) {
  return {{"rel_rmse", short_number(row.rel_rmse)},
          {"expected_rel_rmse", short_number(row.expected_rel_rmse)},
          {"limit", short_number(limit_of(row))},
          {"snr_db", short_number(row.snr_db)},
          {"format", row.format}};
}

Finding row_finding(const VerifyContext& context, const AgainstRow& row) {
  if (!row.problem.empty())
    return weight_finding(context, row.weight, Severity::kError, kName,
                          fmt::format("cannot be compared with BASE: {}", row.problem));
  Finding finding = weight_finding(
      context, row.weight, Severity::kError, kName,
      row.rounded
          ? fmt::format("relative error {:.3g} against BASE where {} gives {:.3g} on the same weights: quantize this "
                        "tensor again",
                        row.rel_rmse, row.format, row.expected_rel_rmse)
          : fmt::format("differs from BASE by {:.3g} although it has the same format: copy it again, or name the BASE "
                        "this checkpoint was made from",
                        row.rel_rmse),
      values_of(row));
  finding.tensor = row.name;
  return finding;
}

bool is_bad(const AgainstRow& row) {
  // Written so that a NaN is bad.
  return !row.problem.empty() || !(row.rel_rmse <= limit_of(row));
}

void summarize(const VerifyContext& context, const std::map<int32_t, LayerTally>& layers, Findings* findings) {
  for (const auto& [layer, tally] : layers) {
    if (tally.bad == 0) continue;
    findings->push_back(
        {Severity::kError,
         "against-layer",
         context.checkpoint->path().string(),
         "",
         fmt::format("{}: {} of {} matrices are worse than their format explains, the worst has a relative "
                     "error of {:.3g} where {:.3g} is expected",
                     layer_text(layer), tally.bad, tally.all, tally.worst, tally.expected),
         {{"layer", std::to_string(layer)},
          {"bad", std::to_string(tally.bad)},
          {"matrices", std::to_string(tally.all)},
          {"worst_rel_rmse", short_number(tally.worst)},
          {"expected_rel_rmse", short_number(tally.expected)}}});
  }
}

// Matrices of either side that have no partner: noted by number, since the other checks name what is missing.
void note_unmatched(const VerifyContext& context, Findings* findings) {
  const MatrixMap own(*context.model);
  const size_t unmatched = own.places().size() - context.against->size();
  if (unmatched == 0) return;
  const bool none = context.against->empty();
  findings->push_back({none ? Severity::kError : Severity::kWarning,
                       std::string(kName),
                       context.base->path().string(),
                       "",
                       fmt::format("{} of {} matrices have no partner in BASE{}", unmatched, own.places().size(),
                                   none ? ": this is another model" : " and were not compared"),
                       {{"unmatched", std::to_string(unmatched)}, {"matrices", std::to_string(own.places().size())}}});
}

void check(const VerifyContext& context, Findings* findings) {
  if (context.base == nullptr) return;
  std::map<int32_t, LayerTally> layers;
  for (const AgainstRow& row : *context.against) {
    LayerTally& tally = layers[row.layer];
    ++tally.all;
    if (!is_bad(row)) continue;
    ++tally.bad;
    if (row.rel_rmse > tally.worst) tally.worst = row.rel_rmse, tally.expected = row.expected_rel_rmse;
    findings->push_back(row_finding(context, row));
  }
  summarize(context, layers, findings);
  note_unmatched(context, findings);
}

}  // namespace

extern const Rule kAgainst = {kName, "--against: what is worse than its format explains", check};

}  // namespace nibble
