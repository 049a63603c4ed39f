// Weights that no model has: random valid codes with scales of ordinary size, packed as a checkpoint's are. A few
// random rows are repeated, so that gigabytes take seconds; no kernel notices.
#pragma once

#include <cstdint>
#include <vector>

#include "nibble/base/thread_pool.h"
#include "nibble/engine/weights/model_weights.h"
#include "nibble/models/model_spec.h"
#include "nibble/numerics/format.h"

namespace nibble {

// How an (n, k) matrix lies in memory. Error for a format that no kernel multiplies.
WeightLayout needed_layout(const Format& format, uint64_t n, uint64_t k);

// `count` matrices (n, k), each with memory of its own. std::bad_alloc if it cannot be had; Error as
// needed_layout().
std::vector<Linear> random_linears(const Format& format, uint64_t n, uint64_t k, uint64_t count, const Arithmetics& how,
                                   ThreadPool* pool);

// Layers of one shape, enough of them to be in no cache when they are taken in turn.
struct RandomLayersRequest {
  const ModelSpec* spec = nullptr;  // one that the engine runs (supports.h)
  LayerSpec layer;
  // What matrices are stored in; router and the projections of single heads (MLA) are in 16 bits, norms, biases and
  // sinks in 32.
  Format experts, others;
  uint64_t memory = uint64_t{1} << 30;  // that routed experts, and all the others, take at least
  uint64_t available = 0;               // bytes that may be taken; 0: not known
  Arithmetics how;
};

class RandomLayers {
 public:
  // Errors as needed_layout(), and with the numbers if they take more than `available`.
  RandomLayers(const RandomLayersRequest& request, ThreadPool* pool);

  // Layers with attention, router and norms of their own. Experts have less memory than they: as much as `memory` asks
  // for and at least that of one layer, in which layers take turns.
  std::vector<LayerWeights>& layers() { return layers_; }
  const std::vector<LayerWeights>& layers() const { return layers_; }
  // The model of these layers: `spec` with so many times the one.
  const ModelSpec& spec() const { return spec_; }

 private:
  void add_experts(const RandomLayersRequest& request, uint64_t sets, ThreadPool* pool);

  ModelSpec spec_;
  std::vector<Linear> gate_, up_, down_;
  std::vector<LayerWeights> layers_;
};

}  // namespace nibble
