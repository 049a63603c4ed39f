#include "nibble/train/experiments/table_walk_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "nibble/base/json.h"
#include "nibble/base/table.h"

namespace nibble {
namespace {

Json score_json(const WalkScore& score) {
  return {{"single_step", score.single_step},
          {"free_running_step", score.free_running_step},
          {"mean_run", score.mean_run},
          {"whole", score.whole}};
}

Json scheme_json(const SchemeOutcome& scheme) {
  return {{"format", scheme.scheme.format.name},
          {"rule", scheme.scheme.rule.name()},
          {"ptq", score_json(scheme.ptq)},
          {"qat", score_json(scheme.qat)},
          {"independent_prediction", scheme.independent_prediction},
          {"seconds", scheme.seconds}};
}

Json seed_json(const TableWalkOutcome& outcome) {
  const SchemeOutcome& first = outcome.schemes.front();
  Json schemes = Json::array();
  for (const SchemeOutcome& scheme : outcome.schemes) schemes.push_back(scheme_json(scheme));
  return {{"seed", outcome.seed},
          {"full", score_json(outcome.full)},
          {"ptq", score_json(first.ptq)},
          {"qat", score_json(first.qat)},
          {"independent_prediction", first.independent_prediction},
          {"schemes", std::move(schemes)},
          {"seconds", outcome.seconds}};
}

double total_seconds(const std::vector<TableWalkOutcome>& outcomes) {
  double sum = 0;
  for (const TableWalkOutcome& outcome : outcomes) sum += outcome.seconds;
  return sum;
}

using Value = std::function<double(const TableWalkOutcome&)>;

// "98.9 (98.1 to 99.0)": the median of an even number of seeds is the lower one, so that each figure was measured.
std::string spread(const std::vector<TableWalkOutcome>& outcomes, const Value& value, double unit, int digits) {
  std::vector<double> values;
  values.reserve(outcomes.size());
  for (const TableWalkOutcome& outcome : outcomes) values.push_back(unit * value(outcome));
  std::ranges::sort(values);
  std::string median = fmt::format("{:.{}f}", values[(values.size() - 1) / 2], digits);
  if (values.size() == 1) return median;
  return fmt::format("{} ({:.{}f} to {:.{}f})", median, values.front(), digits, values.back(), digits);
}

using Score = std::function<const WalkScore&(const TableWalkOutcome&)>;

std::vector<std::string> row(const std::vector<TableWalkOutcome>& outcomes, const std::string& weights,
                             const std::string& stage, const Score& score, const Value& predicted) {
  return {weights,
          stage,
          spread(
              outcomes, [&](const auto& of) { return score(of).single_step; }, 100, 2),
          spread(
              outcomes, [&](const auto& of) { return score(of).mean_run; }, 1, 0),
          spread(
              outcomes, [&](const auto& of) { return score(of).whole; }, 100, 1),
          predicted ? spread(outcomes, predicted, 100, 1) : ""};
}

}  // namespace

std::string table_walk_json(const TableWalkOptions& options, const std::vector<TableWalkOutcome>& outcomes) {
  Json seeds = Json::array();
  for (const TableWalkOutcome& outcome : outcomes) seeds.push_back(seed_json(outcome));
  const TableWalkShape& shape = options.shape;
  return json_text({{"experiment", "table-walk"},
                    {"setting",
                     {{"symbols", shape.symbols},
                      {"embedding", shape.embedding},
                      {"hidden", shape.hidden},
                      {"parameters", shape.parameters()},
                      {"full_steps", options.full_steps},
                      {"qat_steps", options.qat_steps},
                      {"chains", options.chains},
                      {"length", options.length}}},
                    {"seeds", std::move(seeds)},
                    {"seconds", total_seconds(outcomes)}});
}

std::string table_walk_text(const TableWalkOptions& options, const std::vector<TableWalkOutcome>& outcomes) {
  std::vector<std::vector<std::string>> rows{{"weights", "", "single step, %",
                                              fmt::format("mean run of {}", options.length), "chains whole, %",
                                              "if errors were independent, %"}};
  rows.push_back(row(outcomes, "full precision", "", [](const auto& of) -> const WalkScore& { return of.full; }, {}));
  for (size_t i = 0; i < options.schemes.size(); ++i) {
    const FakeQuant& scheme = options.schemes[i];
    const std::string name = fmt::format("{} {}", scheme.format.name, scheme.rule.name());
    rows.push_back(row(
        outcomes, name, "rounded after training", [i](const auto& of) -> const WalkScore& { return of.schemes[i].ptq; },
        [i](const auto& of) { return of.schemes[i].independent_prediction; }));
    rows.push_back(row(outcomes, name, "trained with rounding",
                       [i](const auto& of) -> const WalkScore& { return of.schemes[i].qat; }, {}));
  }
  return table_text(rows) + fmt::format("{} {}, {} chains each; {:.0f} s\n", outcomes.size(),
                                        outcomes.size() == 1 ? "seed" : "seeds: median (least to most)", options.chains,
                                        total_seconds(outcomes));
}

}  // namespace nibble
