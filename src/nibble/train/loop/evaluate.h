// How good the weights are, measured on what would be served: a checkpoint on disk, read and run by nibble's engine.
#pragma once

#include <optional>
#include <string>

#include "nibble/base/file.h"
#include "nibble/base/json.h"
#include "nibble/certify/tasks/task_score.h"
#include "nibble/train/loop/config.h"

namespace nibble {

struct Evaluation {
  std::optional<double> loss;       // nats a label, held-out sequences
  std::optional<TaskScore> chains;  // of a checkable task, free-running
  double seconds = 0;
};

// Free-running chains of a task, the chains that `certify --task` has by default. The engine's scheme and cache are
// certify's defaults too.
TaskScore evaluate_chains(const Path& model, const std::string& task_text, const EvaluateConfig& evaluate, int threads);

// Is `trained` worse than `baseline`? By the loss on held-out sequences, which asks for everything that the data holds;
// or, of chains, by single steps beyond twice the error of their difference. Not by whole chains: a walk soon runs in a
// circle, and those rest on few contexts. `why` says it with the numbers.
struct Comparison {
  bool worse = false;
  std::string why;
};
Comparison compare(const Evaluation& baseline, const Evaluation& trained);

Json evaluation_json(const Evaluation& evaluation);
// Back from an event of the log.
Evaluation evaluation_of(const Json& event);
// "single step 97.70 %, mean run 199 of 512, 35 % of 1,024 chains whole, loss 0.081".
std::string evaluation_text(const Evaluation& evaluation, const EvaluateConfig& config);

}  // namespace nibble
