#include "nibble/engine/layer_pass.h"

#include <algorithm>

#include "nibble/base/error.h"

namespace nibble {
namespace {

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

// Sequences [first, end) that go through a layer together: as many as fit into a pass, or one that is longer.
uint64_t end_of_pass(const SequenceStates& states, uint64_t first) {
  uint64_t end = first + 1;
  while (end < states.sequences() && states.begins[end + 1] - states.begins[first] <= LayerPass::kTokensAtATime) ++end;
  return end;
}

}  // namespace

LayerPass::LayerPass(const ModelSpec& spec, const EngineOptions& options, ThreadPool* pool)
    : spec_(&spec), options_(options), pool_(pool), forward_(spec, pool, options.experts_per_token) {}

SequenceStates LayerPass::embed(const Linear& embedding, const std::vector<std::vector<TokenId>>& sequences) {
  SequenceStates states;
  states.hidden = spec_->hidden;
  states.begins.reserve(sequences.size() + 1);
  for (size_t s = 0; s < sequences.size(); ++s) {
    if (sequences[s].empty()) throw Error("a sequence has no tokens").value("sequence", s);
    check_tokens(*spec_, sequences[s]);
    states.begins.push_back(states.begins.back() + sequences[s].size());
  }
  states.rows.resize(states.begins.back() * states.hidden);
  for (size_t s = 0; s < sequences.size(); ++s) {
    forward_.embed(embedding, sequences[s], states.rows.data() + states.begins[s] * states.hidden);
  }
  return states;
}

void LayerPass::run(uint64_t index, const LayerWeights& weights, SequenceStates* states) {
  const ModelSpec alone = one_layer(*spec_, index);
  const std::vector<CacheScales> scales = one_layer(options_.cache_scales, index);
  Forward forward(alone, pool_, options_.experts_per_token);
  for (uint64_t first = 0; first < states->sequences();) {
    const uint64_t end = end_of_pass(*states, first);
    std::vector<CachedSequence> caches;
    caches.reserve(end - first);
    for (uint64_t s = first; s < end; ++s) caches.emplace_back(alone, options_.cache, scales);
    // More than one piece only where a single sequence is longer than a pass.
    const uint64_t rows_end = states->begins[end];
    for (uint64_t row = states->begins[first]; row < rows_end;) {
      const uint64_t count = std::min(kTokensAtATime, rows_end - row);
      Batch batch;
      for (uint64_t s = first; s < end; ++s)
        batch.add(&caches[s - first], end == first + 1 ? count : states->tokens(s));
      forward.layer(0, weights, batch, states->rows.data() + row * states->hidden);
      for (const BatchSequence& sequence : batch.sequences) sequence.cache->advance(sequence.tokens);
      row += count;
    }
    first = end;
  }
}

void LayerPass::logits(const std::vector<float>& final_norm, const Linear& head, const SequenceStates& states,
                       std::span<const uint64_t> rows, float* out) {
  forward_.logits(final_norm, head, states.rows.data(), rows, out);
}

}  // namespace nibble
