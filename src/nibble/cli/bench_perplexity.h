// `nibble bench --perplexity FILE --model MODEL`.
#pragma once

#include <cstdint>
#include <string>

#include "nibble/cli/command.h"

namespace nibble {

struct BenchPerplexityArgs {
  std::string file, model, scheme = "w4a16";
  uint64_t context = 512;
};

int run_bench_perplexity(const BenchPerplexityArgs& args, const CommonOptions& common);

}  // namespace nibble
