// `nibble bench --perplexity FILE --model MODEL`.
#pragma once

#include <cstdint>
#include <string>

#include "nibble/cli/command.h"
#include "nibble/numerics/cache_types.h"

namespace nibble {

struct BenchPerplexityArgs {
  std::string file, model, scheme = "w4a16", kv{cache_types().front().name};
  std::string per_token;  // a file for every token's score; empty: none
  uint64_t context = 512;
  bool stream = false;
};

int run_bench_perplexity(const BenchPerplexityArgs& args, const CommonOptions& common);

}  // namespace nibble
