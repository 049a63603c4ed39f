// What free-running chains of a task came to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nibble/certify/statistics/bootstrap.h"
#include "nibble/certify/tasks/task.h"

namespace nibble {

// One chain as the model wrote it. `choices` are the tokens that it chose, at most as many as were asked for; inputs
// are the task's own. An end token is the last of them, and a wrong one: a symbol was asked for.
struct TaskChain {
  uint64_t chain = 0;
  std::vector<TokenId> choices;
  // It ended before the asked length: an end token, a limit of positions, NaN. So did one with fewer choices than that,
  // whatever stands here.
  bool truncated = false;
};

struct TaskScore {
  uint64_t chains = 0, steps = 0;      // steps: choices of all chains
  double single_step = 0;              // share of right choices, each judged by the context that the model itself made
  double standard_error = 0;           // of it, over clusters (tables where there are several, else chains); 0 with one
  double mean_run = 0;                 // choices before the first wrong one; a chain without one counts its length
  uint64_t whole = 0;                  // chains of the asked length, all right
  uint64_t truncated = 0;              // chains that ended before
  uint64_t right_as_far = 0;           // truncated ones without a wrong choice
  double whole_share = 0;              // whole / chains: truncation counts as failure …
  Band whole_band;                     // … its band, over the same clusters
  double whole_share_of_complete = 0;  // … and whole / chains that were not truncated; 0 without any
  uint64_t contexts = 0;               // different contexts (Task::context_key) in which a choice was made
  uint64_t end_contexts = 0;           // … in the last quarter of each chain, at least one: a walk runs in circles
  uint64_t cycles = 0;                 // chains that end in a cycle, see below
  double independent_prediction = 0;   // single_step ^ length: whole chains if errors were independent
};

// `length`: choices asked of each chain, at least one. A choice whose expected token does not exist (the context holds
// a token that is no symbol) is wrong. No chains at all: zeros.
//
// Standard error of the ratio Σ r / Σ n over C clusters of n choices, r of them right:
// sqrt(C / (C - 1) · Σ (r - single_step · n)²) / Σ n; with clusters of one size that of their mean.
//
// A chain ends in a cycle of period p if its last max(p, 16) contexts are those p steps before: a circle counts once it
// was closed and gone round again. Where inputs are random, contexts recur by chance as well, but sixteen in a row do
// in about one chain of 10,000 with two symbols, and in one of millions with more. A context without a key recurs
// never.
TaskScore score_task(const Task& task, std::span<const TaskChain> chains, uint64_t length,
                     const BootstrapOptions& bootstrap);

}  // namespace nibble
