// `nibble bench op`: matrix products of real models' shapes against this machine's ceilings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nibble/cli/command.h"

namespace nibble {

struct BenchOpArgs {
  std::vector<std::string> shapes;   // empty: all
  std::vector<std::string> formats;  // empty: the field's four-bit ones
  std::vector<uint64_t> tokens;      // empty: 1
  std::string scheme = "w4a8", kernel;
  double seconds = 0.5;  // of each row
  bool check = true;
};

int run_bench_op(const BenchOpArgs& args, const CommonOptions& common);

}  // namespace nibble
