// How quick one layer of a model's shape is, attention and MLP, with random weights and keys that are in no cache: no
// checkpoint is needed.
#pragma once

#include <cstdint>
#include <string>

#include "nibble/engine/bench/pass_row.h"
#include "nibble/engine/bench/random_weights.h"
#include "nibble/engine/forward.h"

namespace nibble {

// A model's shape by its bundled name. Error for a name that is not bundled, and for a model that the engine does not
// run.
ModelSpec bundled_shape(const std::string& name);

struct LayerBenchRequest {
  ModelSpec model;     // one that the engine runs
  std::string format;  // of the routed experts; the dense MLP's if there are none
  Arithmetics arithmetic;
  double seconds = 0.5;                 // of measuring, each
  uint64_t memory = uint64_t{1} << 30;  // of weights, at least (random_weights.h)
  uint64_t available = 0;
};

class LayerBench {
 public:
  // The first layer with experts that attends to all tokens, else the first with experts, else the first. Everything
  // but the routed experts is INT8 in groups of 32. Errors as RandomLayers.
  LayerBench(const LayerBenchRequest& request, ThreadPool* pool);

  // The layer's output for a few tokens against the reference kernels', as ModelBench::check().
  double check();
  // One token behind a context (`tokens` 1), or a prompt from nothing; each run takes another copy. Median of the runs.
  PassRow measure(uint64_t tokens, uint64_t context);

  std::string kernels() const;  // of the layer's matrices

 private:
  void run(uint64_t copy, uint64_t tokens, CachedSequence* sequence);
  void set_kernel(const std::string& name);

  LayerBenchRequest request_;
  ThreadPool* pool_;
  RandomLayers weights_;
  std::vector<OpWork> work_;  // of the last run
  Forward forward_;
  std::vector<float> x_;
};

}  // namespace nibble
