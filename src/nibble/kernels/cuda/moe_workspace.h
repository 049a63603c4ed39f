// Where the MoE layer keeps what lies between its matrices: a counter of calls, then h and the down projection's sums.
// Both are pairs of a data word and a flag word, the number of the call that wrote it: what earlier calls left behind,
// of any shape, is never mistaken for this one's.
#pragma once

#include <cstdint>

#include "nibble/kernels/cuda/moe_layer.h"

namespace nibble {

struct MoeWorkspace {
  uint64_t hidden = 0;  // (assignments, I / 2) pairs, two BF16 in a word, in the order of experts
  uint64_t sums = 0;    // (2, assignments, H) pairs: the part of the block that begins a row tile, and that ends it
  uint64_t bytes = 0;
};

inline MoeWorkspace moe_workspace(const MoeShape& shape) {
  const uint64_t assignments = kMoeTokensAtMost * shape.topk;
  MoeWorkspace out;
  out.hidden = 256;
  out.sums = (out.hidden + assignments * shape.intermediate * 4 + 255) / 256 * 256;
  out.bytes = out.sums + 2 * assignments * shape.hidden * 8;
  return out;
}

}  // namespace nibble
