// Chains of a checkable task that the served weights draw themselves, with what a policy gradient needs of them.
//
// A group is several chains from one start. A chain's reward is its share of right choices, each judged by the context
// that the model itself made; its advantage, (reward - mean of the group) / (deviation of the group + 1e-4), is that of
// every choice in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/certify/tasks/task.h"
#include "nibble/train/data/train_data.h"

namespace nibble {

struct RolloutOptions {
  uint64_t groups = 16, group = 8;  // starts, and chains of each
  uint64_t length = 64;             // choices of a chain
  double temperature = 1;
};

struct Rollouts {
  SequenceBatch batch;            // labels: the choice behind each token; -1 where none was made
  std::vector<float> advantages;  // of each label; 0 where none is
  std::vector<float> log_probs;   // of each label, by the engine that drew it; 0 where none is
  double reward = 0;              // mean over chains
  double whole = 0;               // share of chains without a wrong choice
};

// Runs `model` (a folder, packed or not) with nibble's engine: cache in float32, no rounding of activations, so that
// what differs from the trainer is the order of sums. `round` numbers the call: starts and draws are new in each.
Rollouts roll_out(const Path& model, const Task& task, const RolloutOptions& options, uint64_t round, uint64_t seed,
                  int threads);

// Advantages of rewards, group after group.
std::vector<double> group_advantages(const std::vector<double>& rewards, uint64_t group);

}  // namespace nibble
