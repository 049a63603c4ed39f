// A model held in memory, and its passes over batches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nibble/base/thread_pool.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/engine/forward.h"
#include "nibble/engine/weights/model_weights.h"
#include "nibble/models/model.h"

namespace nibble {

struct EngineOptions {
  Arithmetics arithmetic;
  CacheElement cache = CacheElement::kBF16;
  std::vector<CacheScales> cache_scales;  // kE4M3: fixed ones, as CachedSequence takes them
  uint64_t experts_per_token = 0;         // 0: the model's
};

// Tokens that a sequence goes on with.
struct EngineInput {
  CachedSequence* sequence = nullptr;
  std::span<const TokenId> tokens;
  bool all_logits = false;  // of every token, else of the last
};

// Error for a token that the model's vocabulary does not have.
void check_tokens(const ModelSpec& spec, std::span<const TokenId> tokens);

// Error for more experts a token than the model has; 0, its own number, is right for every model.
void check_experts(const ModelSpec& spec, uint64_t experts_per_token);

class Engine {
 public:
  // Reads all weights. `checkpoint` must outlive the call only.
  Engine(const Checkpoint& checkpoint, const Model& model, const EngineOptions& options, ThreadPool* pool);

  const ModelSpec& spec() const { return spec_; }
  const EngineOptions& options() const { return options_; }
  // Multiplies with kernels of this name from now on; "": the quickest of each matrix. All give the same bits.
  void set_kernel(const std::string& name);
  // Calls use(matrix) for each of the layers' matrices and for the head.
  void visit_matrices(const std::function<void(const Linear&)>& use) const;
  uint64_t weight_bytes() const { return weight_bytes_; }  // in memory

  CachedSequence make_sequence() const { return {spec_, options_.cache, options_.cache_scales}; }

  // One pass. Logits of the asked rows, input after input, (rows, V); valid until the next call. Error for a token that
  // the vocabulary does not have.
  std::span<const float> run(std::span<const EngineInput> inputs);

  // What the last run() multiplied, step by step; attention is no product.
  std::span<const OpWork> work() const { return work_; }
  // Bytes of weights that it read, embedding rows aside.
  uint64_t bytes_read() const { return static_cast<uint64_t>(sum_of(work_).bytes); }

 private:
  ModelSpec spec_;
  EngineOptions options_;
  Linear embedding_, head_;  // head_ absent: tied
  std::vector<float> final_norm_;
  std::vector<LayerWeights> layers_;
  Forward forward_;
  uint64_t weight_bytes_ = 0;
  std::vector<OpWork> work_;
  std::vector<float> hidden_, logits_;
};

}  // namespace nibble
