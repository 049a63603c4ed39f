// Which kernel multiplies each kind of weights the quickest on this machine, for one token to hundreds: what fills the
// table of kernels/tuning.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nibble/base/thread_pool.h"
#include "nibble/engine/weights/linear.h"
#include "nibble/kernels/tuning.h"

namespace nibble {

struct TuneRequest {
  std::vector<std::string> formats;
  Arithmetics arithmetic;
  uint64_t rows = 2880, cols = 2880;      // of the matrix that is multiplied
  double seconds = 0.2;                   // of each kernel and number of tokens
  uint64_t memory = uint64_t{256} << 20;  // that weights take at least: more than caches hold
};

struct TuneRow {
  std::string format, kernel;
  uint64_t tokens = 0;
  double seconds = 0;   // of a product: the least median of three turns
  bool chosen = false;  // among those of its format and tokens
};

struct TuneResult {
  std::vector<TuneRow> rows;  // all that was measured
  std::vector<TuningRow> table;
};

// Kernels that cannot run are left out, the reference too where anything else runs. What would be chosen anyway stays
// chosen unless another is at least 3 % quicker, so that noise does not move choices. `doing` is told what is measured.
TuneResult tune(const TuneRequest& request, ThreadPool* pool, const std::function<void(const std::string&)>& doing);

}  // namespace nibble
