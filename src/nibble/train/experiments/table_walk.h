// The published experiment: does training with rounded weights restore long chains? A small network learns the whole
// table of a table walk in full precision; its two layers are rounded after training; then it is trained on with
// rounded weights. Judged each time by all contexts one by one, and by free-running greedy chains.
//
// The embeddings and the biases stay in full precision. Everything follows from the seed: the table, the starts of the
// chains, the first weights.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nibble/train/experiments/table_walk_net.h"

namespace nibble {

struct TableWalkOptions {
  TableWalkShape shape;
  uint64_t full_steps = 3000, qat_steps = 2000;
  double full_rate = 3e-3, qat_rate = 1e-3;
  uint64_t chains = 200, length = 256;
  std::vector<FakeQuant> schemes;  // each is rounded to and trained for, from the same full-precision weights
};

// What a network came to.
struct WalkScore {
  double single_step = 0;        // share of right choices over all contexts of the table
  double free_running_step = 0;  // over the contexts that the chains went through
  double mean_run = 0;           // right steps before the first wrong one, of `length`
  double whole = 0;              // share of chains without a wrong step
};

struct SchemeOutcome {
  FakeQuant scheme;
  WalkScore ptq, qat;
  double independent_prediction = 0;  // ptq.single_step ^ length: whole chains if errors were independent
  double seconds = 0;                 // of training and judging
};

struct TableWalkOutcome {
  uint64_t seed = 0;
  WalkScore full;
  std::vector<SchemeOutcome> schemes;
  double seconds = 0;
};

using ShowProgress = std::function<void(const std::string& text)>;

TableWalkOutcome run_table_walk(const TableWalkOptions& options, uint64_t seed, const ShowProgress& show);

// Chains of a network whose choice in context a, b is choices[a · V + b], by certify's rules (task_score.h).
WalkScore score_walk(const TableWalkOptions& options, uint64_t seed, const std::vector<int64_t>& choices);

}  // namespace nibble
