// How quick a matrix product is: one layer's matrix, or the experts that a batch chooses, with weights that are in no
// cache, against what this machine's memory and arithmetic reached in the same run (floor.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nibble/base/thread_pool.h"
#include "nibble/engine/bench/shapes.h"
#include "nibble/engine/weights/linear.h"
#include "nibble/engine/work.h"

namespace nibble {

struct OpBenchRequest {
  ShapeOp op;
  std::string format;
  uint64_t tokens = 1;
  Arithmetics arithmetic;
  double seconds = 0.5;                 // of measuring
  uint64_t memory = uint64_t{1} << 30;  // that weights take at least: more than caches hold
  bool check = true;
};

struct OpBenchRow {
  std::string kernel;
  uint64_t runs = 0;
  double seconds = 0;  // median of a run
  OpWork work;         // mean of a run; bytes as the format stores the weights
  // Of some outputs against the reference kernel, as a share of the largest; 0: the same bits. Absent: not checked.
  std::optional<double> largest_error;
};

// Weights are random, valid codes; experts are drawn anew for each run. std::bad_alloc if the memory cannot be had,
// Error for a format that no kernel multiplies.
OpBenchRow run_op_bench(const OpBenchRequest& request, ThreadPool* pool);

}  // namespace nibble
