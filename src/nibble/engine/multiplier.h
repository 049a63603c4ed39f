// Matrix products of a layer: several matrices at once, activations prepared once for all that read them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nibble/engine/prepared_activations.h"
#include "nibble/engine/weights/linear.h"
#include "nibble/engine/work.h"
#include "nibble/kernels/run_panels.h"

namespace nibble {

// out = x · Wᵀ + bias
struct Product {
  const Linear* weights = nullptr;
  const float* x = nullptr;  // (rows of x, K), `x_stride` floats apart
  uint64_t x_rows = 0, x_stride = 0;
  uint64_t tokens = 0;             // rows of `out`; with `rows` null the first of x
  const uint32_t* rows = nullptr;  // row of x for each row of out
  float* out = nullptr;            // (tokens, N), `out_stride` floats apart
  uint64_t out_stride = 0;
};

// Keeps memory from call to call; not thread-safe.
class Multiplier {
 public:
  explicit Multiplier(ThreadPool* pool) : pool_(pool) {}
  ThreadPool* pool() const { return pool_; }

  // Each run() from now on appends one step to `log`; null: none does. The log must outlive the multiplier.
  void set_log(std::vector<OpWork>* log) { log_ = log; }

  // Outputs must not overlap one another or inputs.
  void run(std::span<const Product> products);
  void run(const Product& product) { run(std::span(&product, 1)); }

 private:
  const PreparedActivations& prepare(const Product& product);

  ThreadPool* pool_;
  std::vector<std::unique_ptr<PreparedActivations>> prepared_;  // memory of earlier calls
  size_t used_ = 0;                                             // of this call
  std::vector<PanelJob> jobs_;
  std::vector<OpWork>* log_ = nullptr;
};

}  // namespace nibble
