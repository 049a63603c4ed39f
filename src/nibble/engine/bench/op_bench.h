// How quick a matrix product is: one layer's matrix, or the experts that a batch chooses, with weights that are in no
// cache, against what this machine's memory and arithmetic reached in the same run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/thread_pool.h"
#include "nibble/engine/bench/shapes.h"
#include "nibble/engine/weights/linear.h"
#include "nibble/hardware/device.h"

namespace nibble {

struct OpBenchRequest {
  ShapeOp op;
  std::string format;
  uint64_t tokens = 1;
  Arithmetics arithmetic;
  double seconds = 0.5;                 // of measuring
  uint64_t memory = uint64_t{1} << 30;  // that weights take at least: more than caches hold
};

struct OpBenchRow {
  std::string kernel;
  ActivationKind activations = ActivationKind::kF32;
  uint64_t runs = 0;
  double seconds = 0;  // median of a run
  double bytes = 0;    // of weights as the format stores them, and flops, mean of a run
  double flops = 0;
  double largest_error =
      0;  // of some outputs against the reference kernel, as a share of the largest; 0: the same bits
};

// Weights are random, valid codes; experts are drawn anew for each run. std::bad_alloc if the memory cannot be had,
// Error for a format that no kernel multiplies.
OpBenchRow run_op_bench(const OpBenchRequest& request, ThreadPool* pool);

// The least time of a run on a machine: reading, or multiplying at the peak of the arithmetic, and which of them it is.
struct OpFloor {
  double seconds = 0;
  std::string_view ceiling;  // "memory", "int8", "f32"
};
OpFloor op_floor(const OpBenchRow& row, const Device& machine);

}  // namespace nibble
