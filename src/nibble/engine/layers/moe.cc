#include "nibble/engine/layers/moe.h"

#include "nibble/kernels/cpu/vector/vector_loops.h"

namespace nibble {
namespace {

void resize(std::vector<float>* values, uint64_t count) {
  if (values->size() < count) values->resize(count);
}

}  // namespace

void MlpRunner::activate(const float* gate, const float* up, uint64_t n, float* out) const {
  const VectorLoops& loops = vector_loops();
  if (spec_->activation == Activation::kClampedSwiglu) {
    loops.clamped_swiglu(gate, up, n, static_cast<float>(spec_->swiglu_limit), static_cast<float>(spec_->swiglu_alpha),
                         out);
  } else {
    loops.silu_mul(gate, up, n, out);
  }
}

void MlpRunner::run_mlp(const MlpWeights& weights, const float* x, uint64_t tokens, std::vector<float>* result) {
  const uint64_t wide = weights.gate.rows(), hidden = weights.gate.cols();
  resize(&gate_, tokens * wide);
  resize(&up_, tokens * wide);
  resize(&hidden_, tokens * wide);
  resize(result, tokens * hidden);
  const Product in[] = {{&weights.gate, x, tokens, hidden, tokens, nullptr, gate_.data(), wide},
                        {&weights.up, x, tokens, hidden, tokens, nullptr, up_.data(), wide}};
  multiplier_->run(in);
  multiplier_->pool()->run(tokens, [&](uint64_t t) {
    activate(gate_.data() + t * wide, up_.data() + t * wide, wide, hidden_.data() + t * wide);
  });
  multiplier_->run({&weights.down, hidden_.data(), tokens, wide, tokens, nullptr, result->data(), hidden});
}

void MlpRunner::add_dense(const MlpWeights& weights, const float* x, uint64_t tokens, float* out) {
  run_mlp(weights, x, tokens, &result_);
  vector_loops().add(out, result_.data(), tokens * weights.gate.cols());
}

// Sorts the slots of all tokens by expert.
void MlpRunner::route(const MoeWeights& weights, const float* x, uint64_t tokens, uint64_t k) {
  const uint64_t experts = spec_->experts;
  resize(&logits_, tokens * experts);
  multiplier_->run({&weights.router, x, tokens, spec_->hidden, tokens, nullptr, logits_.data(), experts});
  slots_.resize(tokens * k);
  multiplier_->pool()->run(tokens, [&](uint64_t t) {
    choose_experts(*spec_, k, weights.correction, logits_.data() + t * experts, slots_.data() + t * k);
  });
  expert_begin_.assign(experts + 1, 0);
  for (const RoutedExpert& slot : slots_) ++expert_begin_[slot.expert + 1];
  for (uint64_t e = 0; e < experts; ++e) expert_begin_[e + 1] += expert_begin_[e];
  std::vector<uint64_t> next(expert_begin_.begin(), expert_begin_.end() - 1);
  token_of_row_.resize(tokens * k);
  row_of_slot_.resize(tokens * k);
  for (uint64_t i = 0; i < slots_.size(); ++i) {
    const uint64_t row = next[slots_[i].expert]++;
    token_of_row_[row] = static_cast<uint32_t>(i / k);
    row_of_slot_[i] = row;
  }
}

// Every sorted slot's row of expert(x), into result_.
void MlpRunner::run_experts(const MoeWeights& weights, const float* x, uint64_t tokens, uint64_t k) {
  const uint64_t rows = tokens * k, wide = spec_->expert_intermediate, hidden = spec_->hidden;
  resize(&gate_, rows * wide);
  resize(&up_, rows * wide);
  resize(&hidden_, rows * wide);
  resize(&result_, rows * hidden);
  const auto of_each_expert = [&](const auto& add) {
    products_.clear();
    for (uint64_t e = 0; e < spec_->experts; ++e) {
      const uint64_t begin = expert_begin_[e], count = expert_begin_[e + 1] - begin;
      if (count != 0) add(weights.experts[e], begin, count);
    }
    multiplier_->run(products_);
  };
  of_each_expert([&](const MlpWeights& expert, uint64_t begin, uint64_t count) {
    const uint32_t* of = token_of_row_.data() + begin;
    products_.push_back({&expert.gate, x, tokens, hidden, count, of, gate_.data() + begin * wide, wide});
    products_.push_back({&expert.up, x, tokens, hidden, count, of, up_.data() + begin * wide, wide});
  });
  multiplier_->pool()->run(rows, [&](uint64_t row) {
    activate(gate_.data() + row * wide, up_.data() + row * wide, wide, hidden_.data() + row * wide);
  });
  std::vector<uint32_t> identity(rows);
  for (uint64_t row = 0; row < rows; ++row) identity[row] = static_cast<uint32_t>(row);
  of_each_expert([&](const MlpWeights& expert, uint64_t begin, uint64_t count) {
    products_.push_back({&expert.down, hidden_.data(), rows, wide, count, identity.data() + begin,
                         result_.data() + begin * hidden, hidden});
  });
}

void MlpRunner::add_moe(const MoeWeights& weights, const float* x, uint64_t tokens, uint64_t top_k, float* out) {
  const uint64_t k = top_k != 0 ? top_k : spec_->experts_per_token, hidden = spec_->hidden;
  route(weights, x, tokens, k);
  run_experts(weights, x, tokens, k);
  const VectorLoops& loops = vector_loops();
  multiplier_->pool()->run(tokens, [&](uint64_t t) {
    std::vector<float> sum(hidden, 0.0F);
    for (uint64_t s = 0; s < k; ++s) {
      const float* row = result_.data() + row_of_slot_[t * k + s] * hidden;
      loops.multiply_add(slots_[t * k + s].weight, row, hidden, sum.data());
    }
    loops.add(out + t * hidden, sum.data(), hidden);
  });
  if (!weights.shared.present()) return;
  std::vector<float> gates;
  if (weights.shared_gate.present()) {
    gates.resize(tokens);
    multiplier_->run({&weights.shared_gate, x, tokens, hidden, tokens, nullptr, gates.data(), 1});
    loops.sigmoid(gates.data(), tokens);
  }
  run_mlp(weights.shared, x, tokens, &result_);
  for (uint64_t t = 0; t < tokens; ++t) {
    loops.multiply_add(gates.empty() ? 1.0F : gates[t], result_.data() + t * hidden, hidden, out + t * hidden);
  }
}

}  // namespace nibble
