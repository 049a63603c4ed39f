#include "nibble/engine/score.h"

#include <algorithm>
#include <numeric>

namespace nibble {

ScoredStates::ScoredStates(const Checkpoint& checkpoint, const Model& model, const EngineOptions& options,
                           const std::vector<std::vector<TokenId>>& sequences, ThreadPool* pool,
                           const std::function<void(ScoreProgress)>& progress)
    : pass_(model.spec, options, pool) {
  check_experts(model.spec, options.experts_per_token);
  const WeightLoader loader(checkpoint, model, options.arithmetic, pool);
  states_ = pass_.embed(loader.embedding(), sequences);
  const uint64_t layers = model.spec.layers.size();
  for (uint64_t index = 0; index < layers; ++index) {
    if (progress) progress({index, layers});
    pass_.run(index, loader.layer(index), &states_);
  }
  if (progress) progress({layers, layers});
  head_ = loader.head();
  final_norm_ = loader.final_norm();
}

std::span<const float> ScoredStates::logits(uint64_t sequence, uint64_t first, uint64_t count) {
  rows_.resize(count);
  std::iota(rows_.begin(), rows_.end(), states_.begins[sequence] + first);
  logits_.resize(count * head_.rows());
  pass_.logits(final_norm_, head_, states_, rows_, logits_.data());
  return logits_;
}

void score(const Checkpoint& checkpoint, const Model& model, const EngineOptions& options,
           const std::vector<std::vector<TokenId>>& sequences, ThreadPool* pool, const ScoreSink& sink,
           const std::function<void(ScoreProgress)>& progress) {
  ScoredStates states(checkpoint, model, options, sequences, pool, progress);
  for (size_t s = 0; s < sequences.size(); ++s) {
    for (uint64_t first = 0; first < sequences[s].size(); first += ScoredStates::kTokensAtATime) {
      const uint64_t count = std::min(ScoredStates::kTokensAtATime, sequences[s].size() - first);
      sink(s, first, count, states.logits(s, first, count));
    }
  }
}

}  // namespace nibble
