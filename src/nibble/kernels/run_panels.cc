#include "nibble/kernels/run_panels.h"

#include <algorithm>
#include <vector>

namespace nibble {
namespace {

constexpr uint64_t kPiecesPerThread = 8;

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

}  // namespace

void run_panels(std::span<const PanelJob> jobs, ThreadPool* pool) {
  uint64_t cost = 0;
  for (const PanelJob& job : jobs) {
    if (job.task.tokens != 0) cost += cost_of_group(job.task) * (job.task.group_end - job.task.group_begin);
  }
  const uint64_t piece_cost = cost / (kPiecesPerThread * static_cast<uint64_t>(pool->threads())) + 1;
  std::vector<Piece> pieces;
  for (const PanelJob& job : jobs) {
    if (job.task.tokens == 0) continue;
    // An even number of groups: kernels walk two side by side.
    const uint64_t groups = std::max<uint64_t>(2, piece_cost / cost_of_group(job.task) / 2 * 2);
    for (uint64_t at = job.task.group_begin; at < job.task.group_end; at += groups) {
      pieces.push_back({&job, at, std::min(at + groups, job.task.group_end)});
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
