#include "nibble/engine/forward.h"

#include <algorithm>
#include <cmath>

#include "nibble/engine/layers/attention.h"
#include "nibble/kernels/cpu/vector/vector_loops.h"

namespace nibble {
namespace {

void resize(std::vector<float>* values, uint64_t count) {
  if (values->size() < count) values->resize(count);
}

// Calls use(row of the batch, sequence, position) for every token, on all threads.
template <typename Use>
void for_tokens(const Batch& batch, ThreadPool* pool, const Use& use) {
  for (const BatchSequence& sequence : batch.sequences) {
    pool->run(sequence.tokens, [&](uint64_t t) { use(sequence.first + t, sequence, sequence.position + t); });
  }
}

uint64_t rotary_width(const ModelSpec& spec, const LayerSpec& layer) {
  return layer.attention == AttentionKind::kMla ? spec.qk_rope_head_dim : spec.attention_shape(layer).head_dim;
}

}  // namespace

Forward::Forward(const ModelSpec& spec, ThreadPool* pool, uint64_t top_k)
    : spec_(&spec), top_k_(top_k), multiplier_(pool), mlp_(spec, &multiplier_) {
  // Two tables: layers without a window, and those with one.
  for (const bool sliding : {false, true}) {
    const auto of_kind = std::find_if(spec.layers.begin(), spec.layers.end(),
                                      [&](const LayerSpec& layer) { return (layer.sliding_window != 0) == sliding; });
    const LayerSpec& layer = of_kind == spec.layers.end() ? spec.layers.front() : *of_kind;
    const RopeSpec& rope = sliding && spec.sliding_rope ? *spec.sliding_rope : spec.rope;
    rotary_.emplace_back(rope, rotary_width(spec, layer), layer.attention == AttentionKind::kMla);
  }
}

const RotaryTable& Forward::rotary(const LayerSpec& layer) { return rotary_[layer.sliding_window != 0 ? 1 : 0]; }

float Forward::softmax_scale(uint64_t width) const {
  return static_cast<float>(rope_softmax_factor(spec_->rope) / std::sqrt(static_cast<double>(width)));
}

void Forward::embed(const Linear& embedding, std::span<const TokenId> tokens, float* x) {
  multiplier_.pool()->run(tokens.size(), [&](uint64_t t) {
    read_row(embedding.matrix, static_cast<uint64_t>(tokens[t]), x + t * spec_->hidden);
  });
}

void Forward::layer(uint64_t index, const LayerWeights& weights, const Batch& batch, float* x) {
  const LayerSpec& layer = spec_->layers[index];
  const uint64_t tokens = batch.tokens, hidden = spec_->hidden;
  const VectorLoops& loops = vector_loops();
  const auto eps = static_cast<float>(spec_->rms_norm_eps);
  resize(&normed_, tokens * hidden);
  const auto norm = [&](const std::vector<float>& weight) {
    multiplier_.pool()->run(tokens, [&](uint64_t t) {
      loops.rms_norm(x + t * hidden, weight.data(), hidden, eps, normed_.data() + t * hidden);
    });
  };
  norm(weights.input_norm);
  const bool latent = layer.attention == AttentionKind::kMla;
  latent ? mla(index, weights.mla, batch, normed_.data(), &heads_)
         : gqa(index, weights.gqa, batch, normed_.data(), &heads_);
  const Linear& output = latent ? weights.mla.o : weights.gqa.o;
  resize(&projected_, tokens * hidden);
  multiplier_.run({&output, heads_.data(), tokens, output.cols(), tokens, nullptr, projected_.data(), hidden});
  loops.add(x, projected_.data(), tokens * hidden);
  norm(weights.post_attention_norm);
  if (layer.mlp == MlpKind::kMoe) {
    mlp_.add_moe(weights.moe, normed_.data(), tokens, top_k_, x);
  } else {
    mlp_.add_dense(weights.mlp, normed_.data(), tokens, x);
  }
}

// Norms and rotation of one token's queries (times the softmax's scale) and keys.
void Forward::prepare_heads(const LayerSpec& layer, const GqaWeights& weights, uint64_t position, float* q, float* k) {
  const VectorLoops& loops = vector_loops();
  const AttentionShape shape = spec_->attention_shape(layer);
  const auto eps = static_cast<float>(spec_->rms_norm_eps);
  if (spec_->qk_norm == QkNorm::kFullWidth) {
    loops.rms_norm(q, weights.q_norm.data(), shape.heads * shape.head_dim, eps, q);
    loops.rms_norm(k, weights.k_norm.data(), shape.kv_heads * shape.head_dim, eps, k);
  }
  const RotaryTable& table = rotary(layer);
  const uint64_t half = table.half();
  std::vector<float> cos(half), sin(half);
  table.angles(position, cos.data(), sin.data());
  const auto prepare = [&](float* head, const std::vector<float>& norm) {
    if (spec_->qk_norm == QkNorm::kPerHead) loops.rms_norm(head, norm.data(), shape.head_dim, eps, head);
    rotate_head(head, cos.data(), sin.data(), half, spec_->rope.interleaved);
  };
  for (uint64_t h = 0; h < shape.heads; ++h) prepare(q + h * shape.head_dim, weights.q_norm);
  for (uint64_t h = 0; h < shape.kv_heads; ++h) prepare(k + h * shape.head_dim, weights.k_norm);
  loops.scale(q, softmax_scale(shape.head_dim), shape.heads * shape.head_dim);
}

void Forward::store(uint64_t index, const Batch& batch, const float* keys, uint64_t key_stride, const float* values,
                    uint64_t value_stride) {
  for (const BatchSequence& sequence : batch.sequences) {
    sequence.cache->layer(index).reserve(sequence.position, sequence.end());
  }
  for_tokens(batch, multiplier_.pool(), [&](uint64_t row, const BatchSequence& sequence, uint64_t position) {
    sequence.cache->layer(index).store(position, keys + row * key_stride, values + row * value_stride);
  });
}

void Forward::gqa(uint64_t index, const GqaWeights& weights, const Batch& batch, const float* x,
                  std::vector<float>* out) {
  const LayerSpec& layer = spec_->layers[index];
  const uint64_t tokens = batch.tokens, hidden = spec_->hidden;
  const uint64_t q_width = weights.q.rows(), k_width = weights.k.rows(), v_width = weights.v.rows();
  resize(&q_, tokens * q_width);
  resize(&k_, tokens * k_width);
  resize(&v_, tokens * v_width);
  const Product products[] = {{&weights.q, x, tokens, hidden, tokens, nullptr, q_.data(), q_width},
                              {&weights.k, x, tokens, hidden, tokens, nullptr, k_.data(), k_width},
                              {&weights.v, x, tokens, hidden, tokens, nullptr, v_.data(), v_width}};
  multiplier_.run(products);
  for_tokens(batch, multiplier_.pool(), [&](uint64_t row, const BatchSequence&, uint64_t position) {
    prepare_heads(layer, weights, position, q_.data() + row * q_width, k_.data() + row * k_width);
  });
  store(index, batch, k_.data(), k_width, v_.data(), v_width);
  const AttentionShape shape = spec_->attention_shape(layer);
  resize(out, tokens * shape.heads * shape.v_head_dim);
  AttentionRequest request;
  request.batch = &batch;
  request.layer = index;
  request.heads = shape.heads;
  request.q = q_.data();
  request.sinks = weights.sinks.empty() ? nullptr : weights.sinks.data();
  request.out = out->data();
  attend(request, multiplier_.pool());
}

// Queries of all heads into q_, the new latents (with their rotated part) into k_.
void Forward::project_latent(const MlaWeights& weights, uint64_t tokens, const float* x) {
  const uint64_t hidden = spec_->hidden, q_width = weights.q_b.rows(), key_width = weights.kv_a.rows();
  resize(&q_, tokens * q_width);
  resize(&k_, tokens * key_width);
  const Product latents{&weights.kv_a, x, tokens, hidden, tokens, nullptr, k_.data(), key_width};
  if (!weights.q_a.present()) {
    const Product both[] = {{&weights.q_b, x, tokens, hidden, tokens, nullptr, q_.data(), q_width}, latents};
    multiplier_.run(both);
    return;
  }
  const uint64_t low = weights.q_a.rows();
  resize(&v_, tokens * low);
  const Product both[] = {{&weights.q_a, x, tokens, hidden, tokens, nullptr, v_.data(), low}, latents};
  multiplier_.run(both);
  for (uint64_t t = 0; t < tokens; ++t) {
    float* row = v_.data() + t * low;
    vector_loops().rms_norm(row, weights.q_a_norm.data(), low, static_cast<float>(spec_->rms_norm_eps), row);
  }
  multiplier_.run({&weights.q_b, v_.data(), tokens, low, tokens, nullptr, q_.data(), q_width});
}

// One token: norm and rotation of its latent; rotation and scale of its queries, whose rotated part goes into the
// latent queries.
void Forward::prepare_latent(const LayerSpec& layer, const MlaWeights& weights, uint64_t row, uint64_t position) {
  const VectorLoops& loops = vector_loops();
  const uint64_t nope = spec_->qk_nope_head_dim, rope = spec_->qk_rope_head_dim, rank = spec_->kv_lora_rank;
  const uint64_t head_width = nope + rope, key_width = rank + rope;
  const RotaryTable& table = rotary(layer);
  std::vector<float> cos(table.half()), sin(table.half());
  table.angles(position, cos.data(), sin.data());
  float* key = k_.data() + row * key_width;
  loops.rms_norm(key, weights.kv_a_norm.data(), rank, static_cast<float>(spec_->rms_norm_eps), key);
  rotate_head(key + rank, cos.data(), sin.data(), table.half(), spec_->rope.interleaved);
  const float scale = softmax_scale(head_width);
  for (uint64_t h = 0; h < spec_->heads; ++h) {
    float* q = q_.data() + (row * spec_->heads + h) * head_width;
    rotate_head(q + nope, cos.data(), sin.data(), table.half(), spec_->rope.interleaved);
    loops.scale(q, scale, head_width);
    std::copy_n(q + nope, rope, latent_q_.data() + (row * spec_->heads + h) * key_width + rank);
  }
}

// Queries go into the latent space and attend to the latents themselves; what comes back is a latent a head.
void Forward::mla(uint64_t index, const MlaWeights& weights, const Batch& batch, const float* x,
                  std::vector<float>* out) {
  const LayerSpec& layer = spec_->layers[index];
  const uint64_t tokens = batch.tokens, heads = spec_->heads, rank = spec_->kv_lora_rank, wide = spec_->v_head_dim;
  const uint64_t head_width = spec_->qk_nope_head_dim + spec_->qk_rope_head_dim;
  const uint64_t key_width = rank + spec_->qk_rope_head_dim;
  project_latent(weights, tokens, x);
  resize(&latent_q_, tokens * heads * key_width);
  for_tokens(batch, multiplier_.pool(), [&](uint64_t row, const BatchSequence&, uint64_t position) {
    prepare_latent(layer, weights, row, position);
  });
  std::vector<Product> products;
  products.reserve(heads);
  for (uint64_t h = 0; h < heads; ++h) {
    products.push_back({&weights.key_up[h], q_.data() + h * head_width, tokens, heads * head_width, tokens, nullptr,
                        latent_q_.data() + h * key_width, heads * key_width});
  }
  multiplier_.run(products);
  store(index, batch, k_.data(), key_width, nullptr, 0);
  resize(&v_, tokens * heads * rank);
  AttentionRequest request;
  request.batch = &batch;
  request.layer = index;
  request.heads = heads;
  request.q = latent_q_.data();
  request.out = v_.data();
  attend(request, multiplier_.pool());
  resize(out, tokens * heads * wide);
  products.clear();
  for (uint64_t h = 0; h < heads; ++h) {
    products.push_back({&weights.value_up[h], v_.data() + h * rank, tokens, heads * rank, tokens, nullptr,
                        out->data() + h * wide, heads * wide});
  }
  multiplier_.run(products);
}

void Forward::logits(const std::vector<float>& final_norm, const Linear& head, const float* x,
                     std::span<const uint64_t> rows, float* out) {
  const uint64_t hidden = spec_->hidden;
  resize(&normed_, rows.size() * hidden);
  for (size_t i = 0; i < rows.size(); ++i) {
    vector_loops().rms_norm(x + rows[i] * hidden, final_norm.data(), hidden, static_cast<float>(spec_->rms_norm_eps),
                            normed_.data() + i * hidden);
  }
  multiplier_.run({&head, normed_.data(), rows.size(), hidden, rows.size(), nullptr, out, head.rows()});
}

}  // namespace nibble
