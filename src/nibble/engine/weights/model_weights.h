// The weights of a model as its layers use them. By layer, so that a model may be held whole or streamed layer by
// layer.
//
// Letters as in the glossary. Matrices are (outputs, inputs); vectors are float32.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nibble/engine/weights/linear.h"
#include "nibble/models/model.h"

namespace nibble {

struct GqaWeights {
  Linear q, k, v,
      o;  // (heads · head_dim, H), (kv_heads · head_dim, H), (kv_heads · v_head_dim, H), (H, heads · v_head_dim)
  std::vector<float> q_norm, k_norm;  // empty: none
  std::vector<float> sinks;           // (heads); empty: none
};

// Multi-head latent attention, absorbed: keys and values are the latent itself.
struct MlaWeights {
  Linear q_a, q_b;  // q_a absent: q_b is the whole query projection, from H
  Linear kv_a;      // (kv_lora_rank + rope, H)
  Linear o;         // (H, heads · v_head_dim)
  std::vector<float> q_a_norm, kv_a_norm;
  std::vector<Linear> key_up;    // one a head: (kv_lora_rank, nope): the query's way into the latent space
  std::vector<Linear> value_up;  // one a head: (v_head_dim, kv_lora_rank)
};

struct MlpWeights {
  Linear gate, up, down;
  bool present() const { return down.present(); }
};

struct MoeWeights {
  Linear router;                  // (E, H)
  std::vector<float> correction;  // (E): added for the choice alone; empty: none
  std::vector<MlpWeights> experts;
  MlpWeights shared;
  Linear shared_gate;  // (1, H); absent: the shared expert counts whole
};

struct LayerWeights {
  std::vector<float> input_norm, post_attention_norm;
  GqaWeights gqa;  // one of the two, as LayerSpec says
  MlaWeights mla;
  MlpWeights mlp;
  MoeWeights moe;

  uint64_t bytes() const;  // that its matrices take
};

// Calls use(matrix) for each matrix that is there; `layer` is a LayerWeights, const or not.
template <typename Layer, typename Use>
void for_matrices(Layer& layer, const Use& use) {
  const auto one = [&](auto& matrix) {
    if (matrix.present()) use(matrix);
  };
  const auto each = [&](auto&... matrices) { (one(matrices), ...); };
  const auto mlp = [&](auto& of) { each(of.gate, of.up, of.down); };
  each(layer.gqa.q, layer.gqa.k, layer.gqa.v, layer.gqa.o);
  each(layer.mla.q_a, layer.mla.q_b, layer.mla.kv_a, layer.mla.o);
  for (auto& head : layer.mla.key_up) one(head);
  for (auto& head : layer.mla.value_up) one(head);
  mlp(layer.mlp);
  each(layer.moe.router, layer.moe.shared_gate);
  mlp(layer.moe.shared);
  for (auto& expert : layer.moe.experts) mlp(expert);
}

class WeightLoader {
 public:
  // Both must outlive the loader. Error if the engine cannot run the model (supports.h) or a parameter is missing.
  WeightLoader(const Checkpoint& checkpoint, const Model& model, Arithmetics how, ThreadPool* pool);

  const ModelSpec& spec() const { return model_->spec; }
  LayerWeights layer(uint64_t index) const;
  Linear embedding() const;  // (V, H)
  std::vector<float> final_norm() const;
  bool tied() const;    // the head is the embedding
  Linear head() const;  // (V, H)

 private:
  const Weight& need(const std::string& name) const;
  const Weight* find(const std::string& name) const;
  std::vector<float> vector(const std::string& name) const;
  std::vector<float> vector_if_there(const std::string& name) const;
  Linear linear(const std::string& module) const;  // MODULE.weight and MODULE.bias
  GqaWeights gqa(uint64_t index) const;
  MlaWeights mla(uint64_t index) const;
  MlpWeights mlp(const std::string& module) const;
  MoeWeights moe(uint64_t index) const;
  MlpWeights expert(int32_t layer, uint64_t expert) const;
  Linear expert_matrix(int32_t layer, uint64_t expert, Projection projection) const;
  std::string first_of(int32_t layer, Role role, size_t rank, uint64_t rows) const;

  LoadOptions options() const { return {how_, pool_, &slab_}; }

  const Checkpoint* checkpoint_;
  const Model* model_;
  Arithmetics how_;
  ThreadPool* pool_;
  mutable Slab slab_;
};

}  // namespace nibble
