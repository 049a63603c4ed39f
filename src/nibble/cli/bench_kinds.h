// The kinds of `nibble bench`: one file each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nibble/cli/bench_report.h"
#include "nibble/cli/command.h"

namespace nibble {

// `bench op`: matrix products of real models' shapes.
int run_bench_op(const BenchSettings& settings, const CommonOptions& common);

// `bench layer`: one layer of a bundled model, with random weights. Tokens of 1 are decoded behind each context.
int run_bench_layer(const BenchSettings& settings, const std::vector<uint64_t>& contexts, const CommonOptions& common);

// `bench --tune`: the quickest kernel for each number of tokens, into `out` ("": the table that this machine's kernels
// are chosen by).
int run_bench_tune(const BenchSettings& settings, const std::string& out, const CommonOptions& common);

struct BenchModelArgs {
  std::string model;               // a checkpoint folder or file
  std::vector<uint64_t> contexts;  // tokens in the cache before those that are decoded
  uint64_t decode = 32;            // tokens; 0: none
};

// `bench model`: a model held in memory; prompts of the settings' tokens.
int run_bench_model(const BenchSettings& settings, const BenchModelArgs& args, const CommonOptions& common);

}  // namespace nibble
