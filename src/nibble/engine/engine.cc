#include "nibble/engine/engine.h"

#include <fmt/format.h>

#include "nibble/base/error.h"

namespace nibble {

void check_tokens(const ModelSpec& spec, std::span<const TokenId> tokens) {
  for (const TokenId id : tokens) {
    if (id >= 0 && static_cast<uint64_t>(id) < spec.vocabulary) continue;
    throw Error("a token is outside the model's vocabulary")
        .value("token", id)
        .value("vocabulary", spec.vocabulary)
        .way_out("take the tokenizer that came with these weights");
  }
}

void check_experts(const ModelSpec& spec, uint64_t experts_per_token) {
  if (experts_per_token == 0) return;
  if (spec.experts == 0) throw Error("the model has no experts").way_out("leave out --experts-per-token");
  if (experts_per_token <= spec.experts) return;
  throw Error("more experts a token than there are")
      .value("experts_per_token", experts_per_token)
      .value("experts", spec.experts)
      .way_out(fmt::format("at most {}; the model's own number is {}", spec.experts, spec.experts_per_token));
}

Engine::Engine(const Checkpoint& checkpoint, const Model& model, const EngineOptions& options, ThreadPool* pool)
    : spec_(model.spec), options_(options), forward_(spec_, pool, options.experts_per_token) {
  check_experts(spec_, options.experts_per_token);
  forward_.multiplier().set_log(&work_);
  const WeightLoader loader(checkpoint, model, options.arithmetic, pool);
  embedding_ = loader.embedding();
  if (!loader.tied()) head_ = loader.head();
  final_norm_ = loader.final_norm();
  weight_bytes_ = embedding_.storage.size() + head_.storage.size();
  for (uint64_t i = 0; i < spec_.layers.size(); ++i) {
    layers_.push_back(loader.layer(i));
    weight_bytes_ += layers_.back().bytes();
  }
}

void Engine::set_kernel(const std::string& name) {
  options_.arithmetic.kernel = name;
  const auto choose = [&](Linear& matrix) { nibble::set_kernel(options_.arithmetic, &matrix); };
  for (LayerWeights& layer : layers_) for_matrices(layer, choose);
  choose(head_.present() ? head_ : embedding_);
}

void Engine::visit_matrices(const std::function<void(const Linear&)>& use) const {
  for (const LayerWeights& layer : layers_) for_matrices(layer, use);
  use(head_.present() ? head_ : embedding_);
}

std::span<const float> Engine::run(std::span<const EngineInput> inputs) {
  Batch batch;
  std::vector<TokenId> tokens;
  std::vector<uint64_t> rows;
  for (const EngineInput& input : inputs) {
    check_tokens(spec_, input.tokens);
    const uint64_t first = batch.tokens;
    batch.add(input.sequence, input.tokens.size());
    tokens.insert(tokens.end(), input.tokens.begin(), input.tokens.end());
    for (uint64_t row = input.all_logits ? first : batch.tokens - 1; row < batch.tokens; ++row) rows.push_back(row);
  }
  if (hidden_.size() < batch.tokens * spec_.hidden) hidden_.resize(batch.tokens * spec_.hidden);
  forward_.embed(embedding_, tokens, hidden_.data());
  work_.clear();
  for (uint64_t i = 0; i < layers_.size(); ++i) forward_.layer(i, layers_[i], batch, hidden_.data());
  const Linear& head = head_.present() ? head_ : embedding_;
  logits_.resize(rows.size() * head.rows());
  forward_.logits(final_norm_, head, hidden_.data(), rows, logits_.data());
  for (const EngineInput& input : inputs) input.sequence->advance(input.tokens.size());
  return logits_;
}

}  // namespace nibble
