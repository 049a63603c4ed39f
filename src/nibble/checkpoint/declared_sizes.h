// Every group size, bit width, block size and symmetry that a carrier of quantization settings declares, wherever it
// declares them: groups with settings of their own, per-layer overrides, preset names. Shapes alone cannot tell a scale
// matrix of another split from one of another group size; a size that no carrier declares is refused.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nibble {

class Checkpoint;

struct DeclaredSizes {
  std::string source;                                 // bare file name
  std::string method;                                 // quant_method, lower case; "" if it is not said
  std::vector<int64_t> group_sizes;                   // distinct, ascending; -1: whole rows
  std::vector<uint64_t> bits;                         // distinct, ascending
  std::vector<std::pair<uint64_t, uint64_t>> blocks;  // (rows, columns), distinct, ascending
  bool symmetric = false, asymmetric = false;         // which of both some group declares
};

// One entry per carrier (config.json at top level and in its sub-configurations, the side configuration). Malformed
// values are skipped: read_quant_hints() reports them.
std::vector<DeclaredSizes> declared_sizes(const Checkpoint& checkpoint);

}  // namespace nibble
