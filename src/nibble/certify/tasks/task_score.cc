#include "nibble/certify/tasks/task_score.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "nibble/base/check.h"

namespace nibble {
namespace {

using Contexts = std::vector<std::optional<uint64_t>>;  // keys, by step

struct JudgedChain {
  uint64_t right = 0;
  uint64_t run = 0;  // choices before the first wrong one
  Contexts contexts;
};

JudgedChain judge(const Task& task, const TaskChain& chain) {
  JudgedChain judged;
  std::vector<TokenId> context = task.start(chain.chain);
  for (uint64_t step = 0; step < chain.choices.size(); ++step) {
    const TokenId choice = chain.choices[step];
    judged.contexts.push_back(task.context_key(context));
    if (task.expected(context) == choice) {
      judged.run += judged.right == step ? 1 : 0;
      ++judged.right;
    }
    context.push_back(choice);
    const std::vector<TokenId> input = task.input(chain.chain, step);
    context.insert(context.end(), input.begin(), input.end());
  }
  return judged;
}

// The last `count` contexts are those `period` steps before.
bool repeats(const Contexts& contexts, uint64_t period, uint64_t count) {
  for (uint64_t i = contexts.size() - count; i < contexts.size(); ++i) {
    if (!contexts[i] || contexts[i] != contexts[i - period]) return false;
  }
  return true;
}

bool ends_in_cycle(const Contexts& contexts) {
  constexpr uint64_t kLeast = 16;
  for (uint64_t period = 1; period + std::max(period, kLeast) <= contexts.size(); ++period) {
    if (repeats(contexts, period, std::max(period, kLeast))) return true;
  }
  return false;
}

struct TaskCluster {
  uint64_t chains = 0, whole = 0, steps = 0, right = 0;
};

// By chain, its cluster; returns how many there are.
uint64_t find_clusters(const Task& task, std::span<const TaskChain> chains, std::vector<uint64_t>* clusters) {
  const uint64_t tables = task.options().tables;
  for (const TaskChain& chain : chains) clusters->push_back(tables > 1 ? chain.chain % tables : chain.chain);
  return number_clusters(*clusters);
}

double ratio(uint64_t part, uint64_t of) { return of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of); }

double ratio_error(std::span<const TaskCluster> clusters, double mean) {
  double squares = 0, steps = 0;
  for (const TaskCluster& one : clusters) {
    const auto own = static_cast<double>(one.steps);
    const double residual = static_cast<double>(one.right) - mean * own;
    squares += residual * residual;
    steps += own;
  }
  const auto count = static_cast<double>(clusters.size());
  return clusters.size() < 2 || steps == 0 ? 0 : std::sqrt(count / (count - 1) * squares) / steps;
}

Band band_of_whole(std::span<const TaskCluster> clusters, const BootstrapOptions& bootstrap) {
  return bootstrap_band(clusters.size(), bootstrap, [&](std::span<const uint32_t> weights) {
    uint64_t whole = 0, chains = 0;
    for (size_t c = 0; c < weights.size(); ++c) {
      whole += weights[c] * clusters[c].whole;
      chains += weights[c] * clusters[c].chains;
    }
    return ratio(whole, chains);
  });
}

}  // namespace

TaskScore score_task(const Task& task, std::span<const TaskChain> chains, uint64_t length,
                     const BootstrapOptions& bootstrap) {
  TaskScore score;
  score.chains = chains.size();
  std::vector<uint64_t> cluster_of;
  std::vector<TaskCluster> clusters(find_clusters(task, chains, &cluster_of));
  std::unordered_set<uint64_t> contexts, end_contexts;
  uint64_t right = 0, runs = 0;
  for (size_t i = 0; i < chains.size(); ++i) {
    const uint64_t steps = chains[i].choices.size();
    NIBBLE_CHECK(steps <= length);
    const JudgedChain judged = judge(task, chains[i]);
    const bool truncated = chains[i].truncated || steps < length, all_right = judged.right == steps;
    const uint64_t whole = !truncated && all_right ? 1U : 0U;
    TaskCluster& cluster = clusters[cluster_of[i]];
    cluster.chains += 1;
    cluster.whole += whole;
    cluster.steps += steps;
    cluster.right += judged.right;
    score.steps += steps;
    score.whole += whole;
    if (truncated) ++score.truncated;
    if (truncated && all_right) ++score.right_as_far;
    if (ends_in_cycle(judged.contexts)) ++score.cycles;
    right += judged.right;
    runs += judged.run;
    for (uint64_t step = 0; step < steps; ++step) {
      if (!judged.contexts[step]) continue;
      contexts.insert(*judged.contexts[step]);
      if (step >= steps * 3 / 4) end_contexts.insert(*judged.contexts[step]);
    }
  }
  score.single_step = ratio(right, score.steps);
  score.standard_error = ratio_error(clusters, score.single_step);
  score.mean_run = ratio(runs, score.chains);
  score.whole_share = ratio(score.whole, score.chains);
  score.whole_band = band_of_whole(clusters, bootstrap);
  score.whole_share_of_complete = ratio(score.whole, score.chains - score.truncated);
  score.contexts = contexts.size();
  score.end_contexts = end_contexts.size();
  score.independent_prediction = std::pow(score.single_step, static_cast<double>(length));
  return score;
}

}  // namespace nibble
