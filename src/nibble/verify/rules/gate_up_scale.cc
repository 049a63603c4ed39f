// Matrices that engines fuse (gate and up of one expert; q, k and v) under different second-level scales. Legal, and
// decoded right by whoever keeps one scale a matrix; an engine that takes the first one for both computes fluent
// nonsense. So it is a warning, with the pair and the ratio.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "gate-up-scale";

// The second-level scale as a multiplier, whichever way it is stored.
double multiplier(const WeightStats& stats, size_t slice) {
  const auto value = static_cast<double>(stats.second[slice]);
  return stats.level == SecondLevel::kDivide ? 1 / value : value;
}

struct Spread {
  size_t low = 0, high = 0;  // weights
  double low_value = 0, high_value = 0;
  double ratio() const { return high_value / low_value; }
};

// The smallest and largest scale of one slice over the members of a group.
Spread spread_of(const VerifyContext& context, const std::vector<size_t>& members, size_t slice) {
  Spread spread;
  for (const size_t w : members) {
    const double value = multiplier(context.scan->weights[w], slice);
    if (spread.low_value == 0 || value < spread.low_value) spread.low = w, spread.low_value = value;
    if (value > spread.high_value) spread.high = w, spread.high_value = value;
  }
  return spread;
}

void check_group(const VerifyContext& context, const std::vector<size_t>& members, Findings* findings) {
  const auto& stats = context.scan->weights;
  size_t slices = stats[members.front()].second.size();
  for (const size_t w : members) slices = std::min(slices, stats[w].second.size());
  Spread worst;
  uint64_t differing = 0;
  for (size_t slice = 0; slice < slices; ++slice) {
    const Spread spread = spread_of(context, members, slice);
    if (!(spread.low_value > 0) || !std::isfinite(spread.high_value) || spread.ratio() == 1) continue;
    ++differing;
    if (differing == 1 || spread.ratio() > worst.ratio()) worst = spread;
  }
  if (differing == 0) return;
  const auto& weights = context.model->table.weights();
  const std::string stack = slices > 1 ? fmt::format(" ({} of {} slices; the worst is given)", differing, slices) : "";
  findings->push_back(part_finding(
      context, worst.high, PartKind::kSecondScale, Severity::kWarning, kName,
      fmt::format(
          "`{}` and `{}` have second-level scales of {:.4g} and {:.4g} (as multipliers), ratio {:.4f}{}: an engine "
          "that fuses them must keep both. `nibble quantize --unify-scales` writes one for both",
          weights[worst.low].name, weights[worst.high].name, worst.low_value, worst.high_value, worst.ratio(), stack),
      {{"pair", weights[worst.low].name},
       {"low", fmt::format("{:.6g}", worst.low_value)},
       {"high", fmt::format("{:.6g}", worst.high_value)},
       {"ratio", fmt::format("{:.4f}", worst.ratio())}}));
}

void check(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  std::unordered_map<std::string, size_t> group_of;
  std::vector<std::vector<size_t>> groups;
  for (size_t w = 0; w < weights.size(); ++w) {
    if (!weights[w].format.two_level || context.scan->weights[w].second.empty()) continue;
    const ParamSpec& param = context.model->params[w];
    const std::string key = fusion_key(param.projection, param.name, param.shape.size());
    if (key.empty()) continue;
    const auto [found, fresh] = group_of.try_emplace(key, groups.size());
    if (fresh) groups.emplace_back();
    groups[found->second].push_back(w);
  }
  for (const auto& members : groups) {
    if (members.size() > 1) check_group(context, members, findings);
  }
}

}  // namespace

extern const Rule kGateUpScale = {kName, "gate and up (q, k and v) under different second-level scales", check};

}  // namespace nibble
