#include "nibble/kernels/run_panels.h"

#include <algorithm>
#include <vector>

namespace nibble {
namespace {

// The last pieces decide how long some threads wait for others; below this a piece costs more than it saves.
constexpr uint64_t kLeastBytes = uint64_t{96} << 10;  // of weights, for few tokens
constexpr uint64_t kLeastGroups = 8;                  // for many, whose activations each piece copies
constexpr uint64_t kFewTokens = 2;

struct Piece {
  const PanelJob* job = nullptr;
  uint64_t group_begin = 0, group_end = 0;
};

// A group's cost: reading its weights, and multiplying them by each token. What reads 1 byte in the time of 4
// multiply-adds a lane is near enough for cutting.
uint64_t cost_of_group(const PanelTask& task) {
  const WeightLayout& layout = task.weights->layout;
  return layout.row_group_bytes() + layout.padded_k() * task.tokens / 4;
}

// An even number: kernels walk two side by side.
uint64_t least_groups(const PanelTask& task) {
  if (task.tokens > kFewTokens) return kLeastGroups;
  return std::max<uint64_t>(2, (kLeastBytes / task.weights->layout.row_group_bytes() + 1) / 2 * 2);
}

}  // namespace

void run_panels(std::span<const PanelJob> jobs, ThreadPool* pool) {
  uint64_t cost = 0;
  for (const PanelJob& job : jobs) {
    if (job.task.tokens != 0) cost += cost_of_group(job.task) * (job.task.group_end - job.task.group_begin);
  }
  // Pieces become smaller towards the end: each takes its thread's half of what is left.
  const uint64_t shares = 2 * static_cast<uint64_t>(pool->threads());
  std::vector<Piece> pieces;
  for (const PanelJob& job : jobs) {
    if (job.task.tokens == 0) continue;
    const uint64_t of_group = cost_of_group(job.task), least = least_groups(job.task);
    for (uint64_t at = job.task.group_begin; at < job.task.group_end;) {
      const uint64_t groups = std::max(least, cost / shares / of_group / 2 * 2);
      const uint64_t end = std::min(at + groups, job.task.group_end);
      pieces.push_back({&job, at, end});
      cost -= of_group * (end - at);
      at = end;
    }
  }
  pool->run(pieces.size(), [&](uint64_t i) {
    PanelTask task = pieces[i].job->task;
    task.group_begin = pieces[i].group_begin;
    task.group_end = pieces[i].group_end;
    pieces[i].job->panel(task);
  });
}

}  // namespace nibble
