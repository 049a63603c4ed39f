#include "nibble/train/experiments/table_walk.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "nibble/base/rng.h"
#include "nibble/base/stopwatch.h"
#include "nibble/certify/tasks/task.h"
#include "nibble/certify/tasks/task_score.h"

namespace nibble {
namespace {

// Between lines of progress.
constexpr uint64_t kShowEvery = 50;

enum class SeedOf : uint64_t { kWeights = 1, kChains = 2 };

std::unique_ptr<Task> task_of(const TableWalkOptions& options, uint64_t seed) {
  return make_task(fmt::format("table-walk:symbols={},seed={}", options.shape.symbols, seed),
                   random_bits(seed, static_cast<uint64_t>(SeedOf::kChains)));
}

std::vector<int64_t> labels_of(const Task& task, const TableWalkShape& shape) {
  std::vector<int64_t> labels;
  labels.reserve(static_cast<size_t>(shape.contexts()));
  for (int64_t context = 0; context < shape.contexts(); ++context) {
    const TokenId pair[] = {static_cast<TokenId>(context / shape.symbols),
                            static_cast<TokenId>(context % shape.symbols)};
    labels.push_back(static_cast<int64_t>(task.expected(pair).value()));
  }
  return labels;
}

// The largest logit, the lowest token on ties.
std::vector<int64_t> choices_of(const torch::Tensor& logits) {
  const int64_t rows = logits.size(0), count = logits.size(1);
  const auto* values = logits.data_ptr<float>();
  std::vector<int64_t> choices;
  choices.reserve(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = values + row * count;
    choices.push_back(std::max_element(from, from + count) - from);
  }
  return choices;
}

TaskChain walk(const Task& task, uint64_t chain, const TableWalkOptions& options, const std::vector<int64_t>& choices) {
  TaskChain walked{.chain = chain, .choices = {}, .truncated = false};
  walked.choices.reserve(options.length);
  const std::vector<TokenId> start = task.start(chain);
  TokenId before = start.at(start.size() - 2), last = start.back();
  for (uint64_t step = 0; step < options.length; ++step) {
    const int64_t context = static_cast<int64_t>(before) * options.shape.symbols + static_cast<int64_t>(last);
    before = last;
    last = static_cast<TokenId>(choices.at(static_cast<size_t>(context)));
    walked.choices.push_back(last);
  }
  return walked;
}

struct Training {
  const char* what;
  uint64_t steps;
  double rate;
  std::optional<FakeQuant> how;
};

class Run {
 public:
  Run(const TableWalkOptions& options, uint64_t seed, const ShowProgress& show)
      : options_(options),
        seed_(seed),
        show_(show),
        labels_(labels_of(*task_of(options, seed), options.shape)),
        step_(options.shape, labels_),
        gradients_(options.shape) {}

  void train(TableWalkTensors& net, const Training& training) {
    Adam adam(net.all.numel());
    for (uint64_t i = 0; i < training.steps; ++i) {
      const double loss = step_.loss(net, training.how, &gradients_);
      adam.step(net.all, gradients_.all, training.rate);
      if (i % kShowEvery != 0) continue;
      show_(fmt::format("seed {}, {}: step {} of {}, loss {:.2e}", seed_, training.what, i, training.steps, loss));
    }
  }

  WalkScore score(const TableWalkTensors& net, const std::optional<FakeQuant>& how) {
    return score_walk(options_, seed_, choices_of(step_.logits(net, how)));
  }

 private:
  const TableWalkOptions& options_;
  uint64_t seed_;
  const ShowProgress& show_;
  std::vector<int64_t> labels_;
  TableWalkStep step_;
  TableWalkTensors gradients_;
};

}  // namespace

WalkScore score_walk(const TableWalkOptions& options, uint64_t seed, const std::vector<int64_t>& choices) {
  const std::unique_ptr<Task> task = task_of(options, seed);
  const std::vector<int64_t> labels = labels_of(*task, options.shape);
  WalkScore score;
  for (size_t i = 0; i < labels.size(); ++i) score.single_step += labels[i] == choices.at(i) ? 1 : 0;
  score.single_step /= static_cast<double>(labels.size());
  std::vector<TaskChain> chains;
  chains.reserve(options.chains);
  for (uint64_t chain = 0; chain < options.chains; ++chain) chains.push_back(walk(*task, chain, options, choices));
  const TaskScore judged = score_task(*task, chains, options.length, {.resamples = 0, .seed = 0});
  score.free_running_step = judged.single_step;
  score.mean_run = judged.mean_run;
  score.whole = judged.whole_share;
  return score;
}

TableWalkOutcome run_table_walk(const TableWalkOptions& options, uint64_t seed, const ShowProgress& show) {
  const Stopwatch total;
  TableWalkOutcome outcome;
  outcome.seed = seed;
  Run run(options, seed, show);
  TableWalkTensors full = initial_table_walk(options.shape, random_bits(seed, static_cast<uint64_t>(SeedOf::kWeights)));
  // What a scheme cannot hold is refused now and not after the first training.
  for (const FakeQuant& scheme : options.schemes) run.score(full, scheme);
  run.train(full, {"full precision", options.full_steps, options.full_rate, std::nullopt});
  outcome.full = run.score(full, std::nullopt);
  outcome.schemes.reserve(options.schemes.size());
  for (const FakeQuant& scheme : options.schemes) {
    const Stopwatch one;
    SchemeOutcome of{.scheme = scheme, .ptq = run.score(full, scheme), .qat = {}};
    of.independent_prediction = std::pow(of.ptq.single_step, static_cast<double>(options.length));
    TableWalkTensors net = full.clone();
    const std::string what = fmt::format("{} {}", scheme.format.name, scheme.rule.name());
    run.train(net, {what.c_str(), options.qat_steps, options.qat_rate, scheme});
    of.qat = run.score(net, scheme);
    of.seconds = one.seconds();
    outcome.schemes.push_back(std::move(of));
  }
  outcome.seconds = total.seconds();
  return outcome;
}

}  // namespace nibble
