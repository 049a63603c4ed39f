// A model writes the chains of a checkable task, free-running: every token that it chooses becomes what it reads next.
#pragma once

#include <functional>
#include <vector>

#include "nibble/certify/chain.h"
#include "nibble/certify/tasks/task_score.h"
#include "nibble/engine/generate_batch.h"

namespace nibble {

struct TaskRunOptions {
  uint64_t chains = 64, length = 512;  // choices of each
  SamplerOptions sampler;
  std::vector<TokenId> end_tokens;
};

// Error if the task's tokens are not in the model's vocabulary, or start, choices and inputs do not fit its positions.
std::vector<TaskChain> run_task(Engine* engine, const Task& task, const TaskRunOptions& options,
                                const std::function<void(uint64_t tokens)>& progress = {});

// The same chains for a teacher-forced pass, inputs marked as given. Chains of one table are one cluster where there
// are several tables. A chain without a choice (NaN at once) is left out.
std::vector<Chain> chains_of_task(const Task& task, const std::vector<TaskChain>& runs);

}  // namespace nibble
