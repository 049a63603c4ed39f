#include "nibble/train/loop/evaluate.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "nibble/base/strings.h"
#include "nibble/certify/task_run.h"
#include "nibble/engine/open_model.h"
#include "nibble/engine/scheme.h"

namespace nibble {
namespace {

constexpr uint64_t kChainSeed = 1;  // certify's, for its default seed
constexpr std::string_view kScheme = "w4a16";

}  // namespace

TaskScore evaluate_chains(const Path& model, const std::string& task_text, const EvaluateConfig& evaluate,
                          int threads) {
  const std::unique_ptr<Task> task = make_task(task_text, kChainSeed);
  const OpenedModel opened = open_model(model.string(), threads);
  EngineOptions options;
  options.arithmetic = arithmetics_of_scheme(kScheme);
  ThreadPool pool(threads);
  Engine engine(opened.checkpoint, opened.model, options, &pool);
  TaskRunOptions run;
  run.chains = evaluate.chains;
  run.length = evaluate.length;
  return score_task(*task, run_task(&engine, *task, run), evaluate.length, {});
}

Comparison compare(const Evaluation& baseline, const Evaluation& trained) {
  Comparison comparison;
  if (baseline.loss && trained.loss) {
    comparison.worse = !(*trained.loss <= *baseline.loss);
    comparison.why = fmt::format("loss {:.5f} against {:.5f}", *trained.loss, *baseline.loss);
  }
  if (!baseline.chains || !trained.chains) return comparison;
  const TaskScore &before = *baseline.chains, &after = *trained.chains;
  const double error = std::hypot(before.standard_error, after.standard_error);
  comparison.worse = comparison.worse || after.single_step + 2 * error < before.single_step;
  comparison.why += fmt::format(
      "{}single step {:.3f} % against {:.3f} % (error of the difference {:.3f} %), mean run "
      "{:.1f} against {:.1f}",
      comparison.why.empty() ? "" : ", ", 100 * after.single_step, 100 * before.single_step, 100 * error,
      after.mean_run, before.mean_run);
  return comparison;
}

Json evaluation_json(const Evaluation& evaluation) {
  Json json = Json::object();
  if (evaluation.loss) json["loss"] = *evaluation.loss;
  if (evaluation.chains) {
    const TaskScore& score = *evaluation.chains;
    json["checkable"] = {{"single_step", score.single_step}, {"standard_error", score.standard_error},
                         {"mean_run", score.mean_run},       {"whole", score.whole},
                         {"whole_share", score.whole_share}, {"chains", score.chains},
                         {"truncated", score.truncated},     {"contexts", score.contexts},
                         {"cycles", score.cycles},           {"independent_prediction", score.independent_prediction}};
  }
  json["seconds"] = evaluation.seconds;
  return json;
}

std::string evaluation_text(const Evaluation& evaluation, const EvaluateConfig& config) {
  std::string text;
  if (evaluation.chains) {
    const TaskScore& score = *evaluation.chains;
    text =
        fmt::format("single step {:.3f} %, mean run {:.1f} of {}, {:.1f} % of {} chains whole", 100 * score.single_step,
                    score.mean_run, config.length, 100 * score.whole_share, with_commas(score.chains));
  }
  if (evaluation.loss) text += fmt::format("{}loss {:.5f}", text.empty() ? "" : ", ", *evaluation.loss);
  return text;
}

}  // namespace nibble
