// The learning rate of a step.
#pragma once

#include <cstdint>

#include "nibble/train/loop/config.h"

namespace nibble {

// kOneCycle, as PyTorch's OneCycleLR with its defaults: from rate / 25 up to `learning_rate` over the first `warmup` of
// the steps, then down to rate / 250,000, both along half a cosine. `step` counts from 0.
double learning_rate(const OptimizerConfig& optimizer, uint64_t step, uint64_t steps);

}  // namespace nibble
