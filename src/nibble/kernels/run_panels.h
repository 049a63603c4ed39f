// Many matrix products at once on all threads: one linear layer, queries, keys and values together, or the experts of a
// layer with their tokens. Results do not depend on the number of threads (panel.h).
#pragma once

#include <span>

#include "nibble/base/thread_pool.h"
#include "nibble/kernels/panel.h"

namespace nibble {

struct PanelJob {
  Panel panel = nullptr;
  PanelTask task;  // its range of row groups is what is computed
};

// Cuts the jobs into pieces of about the same work, for each thread several, and runs them. Jobs without tokens cost
// nothing. Outputs must not overlap.
void run_panels(std::span<const PanelJob> jobs, ThreadPool* pool);

}  // namespace nibble
