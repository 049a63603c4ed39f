#include "nibble/engine/score.h"

#include <algorithm>
#include <numeric>

#include "nibble/base/error.h"

namespace nibble {
namespace {

void check(const ModelSpec& spec, const std::vector<std::vector<TokenId>>& sequences) {
  for (size_t s = 0; s < sequences.size(); ++s) {
    if (sequences[s].empty()) throw Error("a sequence has no tokens").value("sequence", s);
    check_tokens(spec, sequences[s]);
  }
}

// The fixed scales of one layer.
std::vector<CacheScales> one_layer(const std::vector<CacheScales>& scales, uint64_t index) {
  return scales.size() <= 1 ? scales : std::vector<CacheScales>{scales[index]};
}

// The model's spec with the one layer that is at work: a cache of its keys and values alone.
ModelSpec one_layer(const ModelSpec& spec, uint64_t index) {
  ModelSpec one = spec;
  one.layers = {spec.layers[index]};
  return one;
}

}  // namespace

ScoredStates::ScoredStates(const Checkpoint& checkpoint, const Model& model, const EngineOptions& options,
                           const std::vector<std::vector<TokenId>>& sequences, ThreadPool* pool,
                           const std::function<void(ScoreProgress)>& progress)
    : spec_(model.spec), options_(options), pool_(pool), forward_(spec_, pool, options.experts_per_token) {
  check(spec_, sequences);
  check_experts(spec_, options.experts_per_token);
  const WeightLoader loader(checkpoint, model, options.arithmetic, pool);
  embed(loader, sequences);
  const uint64_t layers = spec_.layers.size();
  for (uint64_t index = 0; index < layers; ++index) {
    if (progress) progress({index, layers});
    run_layer(loader, index);
  }
  if (progress) progress({layers, layers});
  head_ = loader.head();
  final_norm_ = loader.final_norm();
}

void ScoredStates::embed(const WeightLoader& loader, const std::vector<std::vector<TokenId>>& sequences) {
  const Linear embedding = loader.embedding();
  for (const std::vector<TokenId>& sequence : sequences) {
    states_.emplace_back(sequence.size() * spec_.hidden);
    forward_.embed(embedding, sequence, states_.back().data());
  }
}

void ScoredStates::run_layer(const WeightLoader& loader, uint64_t index) {
  const LayerWeights weights = loader.layer(index);
  const ModelSpec alone = one_layer(spec_, index);
  const std::vector<CacheScales> scales = one_layer(options_.cache_scales, index);
  Forward forward(alone, pool_, options_.experts_per_token);
  for (std::vector<float>& states : states_) {
    CachedSequence cache(alone, options_.cache, scales);
    const uint64_t tokens = states.size() / spec_.hidden;
    for (uint64_t first = 0; first < tokens; first += kTokensAtATime) {
      const uint64_t count = std::min(kTokensAtATime, tokens - first);
      Batch batch;
      batch.add(&cache, count);
      forward.layer(0, weights, batch, states.data() + first * spec_.hidden);
      cache.advance(count);
    }
  }
}

std::span<const float> ScoredStates::logits(uint64_t sequence, uint64_t first, uint64_t count) {
  rows_.resize(count);
  std::iota(rows_.begin(), rows_.end(), first);
  logits_.resize(count * head_.rows());
  forward_.logits(final_norm_, head_, states_[sequence].data(), rows_, logits_.data());
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
