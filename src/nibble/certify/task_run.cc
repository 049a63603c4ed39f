#include "nibble/certify/task_run.h"

#include <string>

#include "nibble/base/error.h"

namespace nibble {
namespace {

void check(const ModelSpec& spec, const Task& task, const TaskRunOptions& options) {
  if (task.vocabulary() > spec.vocabulary) {
    throw Error("the task's symbols are not in the model's vocabulary")
        .value("task", std::string(task.name()))
        .value("task_tokens", task.vocabulary())
        .value("vocabulary", spec.vocabulary)
        .way_out("name the options that the model was trained with: --task NAME:symbols=N,tables=N,seed=N");
  }
  // Each choice may be followed by an input.
  const uint64_t inputs = task.input(0, 0).size();
  check_length(spec, task.start(0).size(), options.length * (1 + inputs));
}

}  // namespace

std::vector<TaskChain> run_task(Engine* engine, const Task& task, const TaskRunOptions& options,
                                const std::function<void(uint64_t)>& progress) {
  check(engine->spec(), task, options);
  std::vector<std::vector<TokenId>> starts;
  starts.reserve(options.chains);
  for (uint64_t c = 0; c < options.chains; ++c) starts.push_back(task.start(c));
  BatchGenerateOptions batch;
  batch.tokens = options.length;
  batch.sampler = options.sampler;
  batch.end_tokens = options.end_tokens;
  std::vector<BatchAnswer> answers = generate_batch(
      engine, starts, batch, [&](uint64_t sequence, uint64_t step) { return task.input(sequence, step); }, progress);
  std::vector<TaskChain> runs;
  runs.reserve(answers.size());
  for (uint64_t c = 0; c < answers.size(); ++c) {
    runs.push_back({c, std::move(answers[c].tokens), answers[c].finish != Finish::kLength});
  }
  return runs;
}

std::vector<Chain> chains_of_task(const Task& task, const std::vector<TaskChain>& runs) {
  const uint64_t tables = task.options().tables;
  std::vector<Chain> chains;
  for (const TaskChain& run : runs) {
    if (run.choices.empty()) continue;
    Chain chain{.prompt = task.start(run.chain), .answer = {}};
    for (uint64_t step = 0; step < run.choices.size(); ++step) {
      chain.answer.push_back(run.choices[step]);
      if (step + 1 == run.choices.size()) break;
      for (const TokenId given : task.input(run.chain, step)) {
        chain.given.push_back(chain.answer.size());
        chain.answer.push_back(given);
      }
    }
    chain.capped = !run.truncated;
    chain.cluster = tables > 1 ? run.chain % tables : run.chain;
    chains.push_back(std::move(chain));
  }
  return chains;
}

}  // namespace nibble
