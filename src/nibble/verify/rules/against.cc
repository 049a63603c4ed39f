// What is worse than its format explains. The expected error is measured on BASE's own rows (against.h) with the rule
// that the manifest records; a matrix is reported when its relative error exceeds 1.5 times that plus 0.02, which
// leaves room for other scale rules and for calibrated methods that trade weight error for output error. A matrix in
// BASE's own format is expected to be equal, or equal to what the manifest's record of changed scales makes of BASE.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "nibble/verify/against.h"
#include "nibble/verify/matrix_map.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "against";

struct LayerTally {
  uint64_t bad = 0, all = 0;
  double worst = 0, expected = 0;
};

FindingValues values_of(const AgainstRow& row) {
  FindingValues values{{"rel_rmse", short_number(row.rel_rmse)},
                       {"expected_rel_rmse", short_number(row.expected_rel_rmse)},
                       {"limit", short_number(explained_error(row))},
                       {"snr_db", short_number(row.snr_db)},
                       {"format", row.format}};
  if (!row.rule.empty()) values.emplace_back("rule", row.rule);
  if (row.off_record) values.emplace_back("off_record", short_number(*row.off_record));
  return values;
}

std::string row_message(const AgainstRow& row) {
  if (row.rounded)
    return fmt::format(
        "relative error {:.3g} against BASE where {}{} gives {:.3g} on the same weights: quantize this tensor again",
        row.rel_rmse, row.format, row.rule.empty() ? "" : fmt::format(" ({})", row.rule), row.expected_rel_rmse);
  if (row.off_record)
    return fmt::format(
        "differs by {:.3g} from what the recorded change of its second-level scale makes of BASE: copy it and "
        "nibble.json again, or name the BASE this checkpoint was made from",
        *row.off_record);
  return fmt::format(
      "differs from BASE by {:.3g} although it has the same format: copy it again, or name the BASE this checkpoint "
      "was "
      "made from",
      row.rel_rmse);
}

Finding row_finding(const VerifyContext& context, const AgainstRow& row) {
  if (!row.problem.empty())
    return weight_finding(context, row.weight, Severity::kError, kName,
                          fmt::format("cannot be compared with BASE: {}", row.problem));
  Finding finding = weight_finding(context, row.weight, Severity::kError, kName, row_message(row), values_of(row));
  finding.tensor = row.name;
  return finding;
}

// A record explains an error, but does not make it small: of scales far below the shared one little is left.
void warn_of_costly_change(const VerifyContext& context, const AgainstRow& row, Findings* findings) {
  if (!row.change_rel_rmse) return;
  const Format& format = context.model->table.weights()[row.weight].format;
  const double typical = family_of(format).typical_rel_rmse(format);
  if (*row.change_rel_rmse <= typical) return;
  Finding finding = weight_finding(
      context, row.weight, Severity::kWarning, kName,
      fmt::format("the recorded change of its second-level scale costs a relative error of {:.3g}, more than {} itself "
                  "({:.3g}): quantize again without --unify-scales",
                  *row.change_rel_rmse, row.format, typical),
      values_of(row));
  finding.tensor = row.name;
  findings->push_back(std::move(finding));
}

// Nothing records the rule, and another one than the default gives such errors: it may be meant.
void warn_of_other_rule(const VerifyContext& context, const AgainstRow& row, Findings* findings) {
  if (!row.default_rel_rmse) return;
  Finding finding = weight_finding(
      context, row.weight, Severity::kWarning, kName,
      fmt::format(
          "relative error {:.3g} against BASE: more than the default rule of {} gives on the same weights "
          "({:.3g}), and no more than {} ({:.3g}) explains. Quantize this tensor again unless such a rule was meant",
          row.rel_rmse, row.format, *row.default_rel_rmse, row.rule, row.expected_rel_rmse),
      values_of(row));
  finding.tensor = row.name;
  findings->push_back(std::move(finding));
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
    if (!is_worse_than_explained(row)) {
      warn_of_costly_change(context, row, findings);
      warn_of_other_rule(context, row, findings);
      continue;
    }
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
