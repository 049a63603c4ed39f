// What a run came to, as text and JSON, and back from its log.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nibble/base/strings.h"
#include "nibble/train/loop/run.h"

namespace nibble {

Evaluation evaluation_of(const Json& event) {
  const std::string source = "the log";
  Evaluation evaluation;
  evaluation.loss = json_double(event, "loss", source);
  evaluation.seconds = json_double(event, "seconds", source).value_or(0);
  const Json* chains = json_member(event, "checkable");
  if (chains == nullptr) return evaluation;
  const auto number = [&](const char* key) { return json_double(*chains, key, source).value_or(0); };
  const auto count = [&](const char* key) { return json_uint(*chains, key, source).value_or(0); };
  TaskScore score;
  score.single_step = number("single_step");
  score.standard_error = number("standard_error");
  score.mean_run = number("mean_run");
  score.whole = count("whole");
  score.whole_share = number("whole_share");
  score.chains = count("chains");
  score.truncated = count("truncated");
  score.contexts = count("contexts");
  score.cycles = count("cycles");
  score.independent_prediction = number("independent_prediction");
  evaluation.chains = score;
  return evaluation;
}

Json outcome_json(const TrainRequest& request, const TrainOutcome& outcome) {
  Json json = {{"name", request.config.name},    {"parameters", outcome.parameters}, {"steps", outcome.steps},
               {"of", request.config.steps},     {"finished", outcome.finished},     {"seconds", outcome.seconds},
               {"last_loss", outcome.last_loss}, {"out", request.out.string()}};
  if (request.config.rounding) {
    json["format"] = request.config.rounding->format.name;
    json["rule"] = request.config.rounding->rule.name();
  }
  if (outcome.baseline) json["baseline"] = evaluation_json(*outcome.baseline);
  if (outcome.trained) json["trained"] = evaluation_json(*outcome.trained);
  if (!outcome.verdict.empty()) json["verdict"] = outcome.verdict;
  if (outcome.dense) json["dense"] = outcome.dense->string();
  if (outcome.packed) json["packed"] = outcome.packed->string();
  return json;
}

std::string outcome_text(const TrainRequest& request, const TrainOutcome& outcome) {
  const EvaluateConfig& evaluate = request.config.evaluate;
  std::string text = fmt::format("{}: {} parameters, {} of {} steps, last loss {:.5g}, {:.0f} s\n", request.config.name,
                                 with_commas(outcome.parameters), with_commas(outcome.steps),
                                 with_commas(request.config.steps), outcome.last_loss, outcome.seconds);
  if (outcome.baseline) text += fmt::format("rounded  {}\n", evaluation_text(*outcome.baseline, evaluate));
  if (outcome.trained) text += fmt::format("trained  {}\n", evaluation_text(*outcome.trained, evaluate));
  if (outcome.dense) text += fmt::format("16 bits  {}\n", outcome.dense->string());
  if (outcome.packed) text += fmt::format("packed   {}\n", outcome.packed->string());
  if (!outcome.finished) text += fmt::format("goes on with --resume --out {}\n", request.out.string());
  return text;
}

}  // namespace nibble
