// A model as data: what a family's configuration says, in the same terms for every family. Shapes follow the glossary's
// letters. Counts come from the configuration, never from the tensors: verify compares the two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nibble/numerics/format.h"

namespace nibble {

enum class AttentionKind : uint8_t { kGqa, kMla, kOther };
enum class MlpKind : uint8_t { kDense, kMoe };
enum class RouterKind : uint8_t { kSoftmaxTopK, kTopKSoftmax, kSigmoidBias, kOther };
enum class Activation : uint8_t { kSilu, kClampedSwiglu, kOther };

struct RopeSpec {
  double theta = 10000;
  std::string scaling;  // "", "yarn", "llama3", …
  double factor = 1, beta_fast = 32, beta_slow = 1, mscale = 0, mscale_all_dim = 0, low_freq_factor = 1,
         high_freq_factor = 4;
  uint64_t original_max_position = 0;
  bool truncate = true;
  double partial_rotary_factor = 1;
};

struct LayerSpec {
  AttentionKind attention = AttentionKind::kGqa;
  MlpKind mlp = MlpKind::kDense;
  uint64_t sliding_window = 0;  // 0: full
};

struct ModelSpec {
  std::string family;      // "qwen3_moe"
  std::string model_type;  // as in the configuration
  std::string prefix;      // "model.", "language_model.model.", ""
  Element dtype = Element::kBF16;
  uint64_t hidden = 0;  // H
  uint64_t vocabulary = 0;
  uint64_t heads = 0, kv_heads = 0, head_dim = 0;
  uint64_t dense_intermediate = 0;
  uint64_t experts = 0, experts_per_token = 0, expert_intermediate = 0;  // E, top-k, I
  uint64_t shared_experts = 0, shared_intermediate = 0;  // shared_intermediate: all shared experts together
  uint64_t latent = 0;                                   // width of the routed experts' input if not H
  uint64_t q_lora_rank = 0, kv_lora_rank = 0, qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;  // MLA
  uint64_t n_group = 0, topk_group = 0;
  double routed_scaling_factor = 1;
  bool norm_topk_prob = false;
  RouterKind router = RouterKind::kSoftmaxTopK;
  Activation activation = Activation::kSilu;
  double swiglu_limit = 0;
  double rms_norm_eps = 1e-6;
  bool tied_embeddings = false, attention_bias = false, qk_norm = false, sinks = false;
  uint64_t mtp_layers = 0;
  uint64_t max_positions = 0;
  RopeSpec rope;
  std::vector<LayerSpec> layers;
};

}  // namespace nibble
