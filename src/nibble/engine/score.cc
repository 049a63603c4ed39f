#include "nibble/engine/score.h"

#include <algorithm>

#include "nibble/base/error.h"

namespace nibble {
namespace {

constexpr uint64_t kTokensAtATime = 512;  // bounds the memory of activations and logits

void check(const ModelSpec& spec, const std::vector<std::vector<TokenId>>& sequences) {
  for (size_t s = 0; s < sequences.size(); ++s) {
    if (sequences[s].empty()) throw Error("a sequence has no tokens").value("sequence", s);
    check_tokens(spec, sequences[s]);
  }
}

// Calls use(sequence, first, count) for pieces of all sequences, each in order.
template <typename Use>
void for_pieces(const std::vector<std::vector<TokenId>>& sequences, const Use& use) {
  for (size_t s = 0; s < sequences.size(); ++s) {
    for (uint64_t first = 0; first < sequences[s].size(); first += kTokensAtATime) {
      use(s, first, std::min(kTokensAtATime, sequences[s].size() - first));
    }
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

void score(const Checkpoint& checkpoint, const Model& model, const EngineOptions& options,
           const std::vector<std::vector<TokenId>>& sequences, ThreadPool* pool, const ScoreSink& sink,
           const std::function<void(ScoreProgress)>& progress) {
  const ModelSpec& spec = model.spec;
  check(spec, sequences);
  check_experts(spec, options.experts_per_token);
  const WeightLoader loader(checkpoint, model, options.arithmetic, pool);
  std::vector<std::vector<float>> states(sequences.size());
  {
    Forward forward(spec, pool, options.experts_per_token);
    const Linear embedding = loader.embedding();
    for (size_t s = 0; s < sequences.size(); ++s) {
      states[s].resize(sequences[s].size() * spec.hidden);
      forward.embed(embedding, sequences[s], states[s].data());
    }
  }
  for (uint64_t index = 0; index < spec.layers.size(); ++index) {
    if (progress) progress({index, spec.layers.size()});
    const LayerWeights weights = loader.layer(index);
    const ModelSpec alone = one_layer(spec, index);
    const std::vector<CacheScales> scales = one_layer(options.cache_scales, index);
    Forward forward(alone, pool, options.experts_per_token);
    for (size_t s = 0; s < sequences.size(); ++s) {
      CachedSequence cache(alone, options.cache, scales);
      for (uint64_t first = 0; first < sequences[s].size(); first += kTokensAtATime) {
        const uint64_t count = std::min(kTokensAtATime, sequences[s].size() - first);
        Batch batch;
        batch.add(&cache, count);
        forward.layer(0, weights, batch, states[s].data() + first * spec.hidden);
        cache.advance(count);
      }
    }
  }
  if (progress) progress({spec.layers.size(), spec.layers.size()});
  const Linear head = loader.head();
  const std::vector<float> norm = loader.final_norm();
  Forward forward(spec, pool, options.experts_per_token);
  std::vector<float> logits;
  for_pieces(sequences, [&](size_t s, uint64_t first, uint64_t count) {
    std::vector<uint64_t> rows(count);
    for (uint64_t i = 0; i < count; ++i) rows[i] = first + i;
    logits.resize(count * head.rows());
    forward.logits(norm, head, states[s].data(), rows, logits.data());
    sink(s, first, count, logits);
  });
}

}  // namespace nibble
