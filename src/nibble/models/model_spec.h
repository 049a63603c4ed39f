// A model as data: what a family's configuration says, in the same terms for every family. Shapes follow the glossary's
// letters. Counts come from the configuration, never from the tensors: verify compares the two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nibble/models/role.h"
#include "nibble/numerics/format.h"

namespace nibble {

enum class AttentionKind : uint8_t {
  kGqa,
  kMla,
  kLinear,      // a recurrent state instead of keys and values (KDA, Gated DeltaNet, Mamba-2)
  kCompressed,  // DeepSeek-V4: one shared key/value head, compressed beyond the sliding window
  kNone,        // the layer is an MLP alone (Nemotron-H)
  kOther
};
enum class MlpKind : uint8_t { kDense, kMoe, kNone };
// kSoftmaxTopK: softmax over all experts, then the k largest. kTopKSoftmax: the k largest logits, softmax over those.
// kSigmoidBias, kSqrtSoftplusBias: elementwise scores; a correction bias decides the choice, never the weight.
enum class RouterKind : uint8_t { kSoftmaxTopK, kTopKSoftmax, kSigmoidBias, kSqrtSoftplusBias, kOther };
enum class Activation : uint8_t { kSilu, kClampedSwiglu, kOther };
// Norm of queries and keys before rotation: over each head's width, or over all heads together (MiniMax-M2).
enum class QkNorm : uint8_t { kNone, kPerHead, kFullWidth };

struct RopeSpec {
  double theta = 10000;
  std::string scaling;  // "", "yarn", "llama3", … as the configuration spells it
  double factor = 1, beta_fast = 32, beta_slow = 1, mscale = 0, mscale_all_dim = 0, low_freq_factor = 1,
         high_freq_factor = 4;
  double attention_factor = 0;  // 0: follows from factor and mscale
  uint64_t original_max_position = 0;
  bool truncate = true;
  double partial_rotary_factor = 1;  // of head_dim; MLA rotates qk_rope_head_dim, whatever stands here
  bool interleaved = false;          // pairs (2i, 2i+1); otherwise (i, i + half)
  double compress_theta = 0;         // DeepSeek-V4: for compressed entries
  friend bool operator==(const RopeSpec&, const RopeSpec&) = default;
};

struct LayerSpec {
  AttentionKind attention = AttentionKind::kGqa;
  MlpKind mlp = MlpKind::kDense;
  uint64_t sliding_window = 0;  // 0: full
  uint64_t compress_ratio = 0;  // kCompressed: tokens per compressed entry, 0: none
  bool indexer = false;         // chooses the keys that attention reads
  bool chosen_keys = false;  // attention reads IndexerSpec::topk keys: its own indexer's choice or an earlier layer's
  bool hash_routed = false;  // experts come from a table over token ids
  bool stores_kv = true;     // false: reads the keys and values that an earlier layer keeps
  bool stores_index = true;  // false: its indexer reads the keys of an earlier layer's
  uint64_t ngram_rows = 0;   // of a table over n-grams of tokens, from which the layer adds; 0: none
  uint64_t conv_state = 0;   // elements that short convolutions outside linear attention keep of a sequence
  bool chunked = false;      // the window is the token's own block of so many, not the last so many (Llama-4)
  bool rotary = true;        // false: queries and keys are not rotated
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

// A family's own names for stacks of experts, behind "LAYER."; empty: BLOCK.experts.gate_up_proj …
struct StackNames {
  std::string gate_up, gate, up, down;
  friend bool operator==(const StackNames&, const StackNames&) = default;
};

// The three matrices of an expert under the family's names; how its own releases store them.
struct ExpertNaming {
  std::string block = "mlp";                                           // "LAYER.mlp.experts.…"
  std::string gate = "gate_proj", up = "up_proj", down = "down_proj";  // gate empty: two matrices, no gate
  // kNone: one by one; kStackedExperts: every projection a stack; kGateThenUp, kInterleaved (gpt-oss): gate and up in
  // one stack.
  Fusion native = Fusion::kNone;
  bool biases = false;
  StackNames stacks{};
  bool transposed = false;  // dense files hold the stacks of the native form as (E, K, N)
  friend bool operator==(const ExpertNaming&, const ExpertNaming&) = default;
};

struct IndexerSpec {
  uint64_t heads = 0, head_dim = 0, topk = 0;
  uint64_t tokens_per_key = 1;  // pooled before they are kept
  uint64_t block = 1;           // it chooses topk blocks of so many keys (MiniMax-M3)
  friend bool operator==(const IndexerSpec&, const IndexerSpec&) = default;
};

// A state of heads · key_dim · value_dim a layer, behind a short convolution over queries, keys and values. Mamba-2's
// groups are key heads, its state size is key_dim.
struct LinearAttentionSpec {
  uint64_t heads = 0, key_heads = 0, key_dim = 0, value_dim = 0, conv_kernel = 0;
  uint64_t conv_channels() const { return 2 * key_heads * key_dim + heads * value_dim; }
  friend bool operator==(const LinearAttentionSpec&, const LinearAttentionSpec&) = default;
};

// Memory of token n-grams that some layers (LayerSpec::ngram_rows) look up and add to the residual stream: `lookups`
// rows a token, of `width` together, then a short convolution.
struct NgramSpec {
  uint64_t ngram = 0, lookups = 0, width = 0, conv_kernel = 0;
  uint64_t table_parts = 1;  // tensors that hold a table
  friend bool operator==(const NgramSpec&, const NgramSpec&) = default;
};

// Rows that a layer looks up by hashes of the last few tokens, `reads` of them a token; parameters of no matrix
// product.
struct MemoryTable {
  uint64_t layer = 0, rows = 0, width = 0, reads = 0;
  friend bool operator==(const MemoryTable&, const MemoryTable&) = default;
};

// Of grouped-query attention: query heads, key/value heads, widths of a key and of a value.
struct AttentionShape {
  uint64_t heads = 0, kv_heads = 0, head_dim = 0, v_head_dim = 0;
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

// Inkling: a learned bias by distance instead of rotation, of `width` states a head, up to `extent` tokens back.
struct RelativeBiasSpec {
  uint64_t width = 0, extent = 0;
  friend bool operator==(const RelativeBiasSpec&, const RelativeBiasSpec&) = default;
};

struct ModelSpec {
  std::string family;      // "qwen3_moe"
  std::string model_type;  // as in the configuration
  std::string prefix;      // "model.", "language_model.model.", ""
  std::string mtp_prefix;  // "mtp.": MTP layers are "mtp.0." …; "": they count on behind the last layer
  Element dtype = Element::kBF16;
  uint64_t hidden = 0;  // H
  uint64_t vocabulary = 0;
  uint64_t head_vocabulary = 0;  // rows of the head if not `vocabulary`: its rows may be padded
  uint64_t heads = 0, kv_heads = 0, head_dim = 0;
  AttentionShape sliding;  // of layers with a window, where they differ from the others; no heads: they do not
  uint64_t dense_intermediate = 0;
  uint64_t experts = 0, experts_per_token = 0, expert_intermediate = 0;  // E, top-k, I
  uint64_t shared_experts = 0, shared_intermediate = 0;  // shared_intermediate: all shared experts together
  uint64_t latent = 0;                                   // width of the routed experts' input if not H
  uint64_t q_lora_rank = 0, kv_lora_rank = 0, qk_nope_head_dim = 0, qk_rope_head_dim = 0;  // MLA
  uint64_t v_head_dim = 0;                 // MLA; grouped-query attention: 0 if as wide as a key
  uint64_t o_groups = 0, o_lora_rank = 0;  // DeepSeek-V4: grouped low-rank output projection
  uint64_t hyper_streams = 0;              // hyper-connections: residual streams, 0: none
  uint64_t hyper_rank = 0;                 // Qwen4-Exp: of the matrices that mix the streams, 0: they are whole
  uint64_t residual_blocks = 0;            // Kimi-K3: layers per block of attention residuals, 0: none
  uint64_t n_group = 0, topk_group = 0;    // expert groups of the router; 0: none
  double routed_scaling_factor = 1;
  bool norm_topk_prob = false;
  RouterKind router = RouterKind::kSoftmaxTopK;
  Activation activation = Activation::kSilu;
  double swiglu_limit = 0, swiglu_alpha = 1;
  double rms_norm_eps = 1e-6;
  bool tied_embeddings = false, attention_bias = false, mlp_bias = false, sinks = false, output_gate = false;
  bool sliding_sinks = false;    // sinks in layers with a window alone (MiMo)
  bool fused_qkv = false;        // q, k and v are one matrix
  bool values_are_keys = false;  // layers without a window have no v_proj, their values are the keys (Gemma-4)
  QkNorm qk_norm = QkNorm::kNone;
  uint64_t mtp_layers = 0;
  uint64_t mtp_layers_per_step = 1;  // that draft one token together (Nemotron-H: attention and experts are layers)
  // Parameters that the published counts of the model have beyond its tensors (negative: that they leave out). Families
  // say which.
  int64_t published_difference = 0;
  uint64_t unlisted_mtp_layers = 0;  // declared, but nothing public describes their tensors: counted nowhere
  uint64_t max_positions = 0;
  RopeSpec rope;
  std::optional<RopeSpec> sliding_rope;  // of layers with a window, where it differs
  ExpertNaming expert_naming;
  IndexerSpec indexer;
  LinearAttentionSpec linear;
  NgramSpec ngram;
  std::vector<MemoryTable> memory_tables;
  RelativeBiasSpec relative_bias;
  uint64_t conv_kernel = 0;           // of short convolutions outside linear attention
  std::vector<uint64_t> mtp_windows;  // one an MTP layer, 0: full; empty: all full
  std::vector<LayerSpec> layers;

  // Width of the routed experts' input and output.
  uint64_t expert_width() const { return latent != 0 ? latent : hidden; }
  // Of a layer with grouped-query attention.
  AttentionShape attention_shape(const LayerSpec& layer) const {
    if (layer.sliding_window != 0 && sliding.heads != 0) return sliding;
    return {heads, kv_heads, head_dim, v_head_dim != 0 ? v_head_dim : head_dim};
  }
  // "model.layers.3."; layers from layers.size() on are the MTP layers.
  std::string layer_prefix(int32_t layer) const {
    const auto count = static_cast<int32_t>(layers.size());
    if (layer >= count && !mtp_prefix.empty()) return mtp_prefix + std::to_string(layer - count) + ".";
    return prefix + "layers." + std::to_string(layer) + ".";
  }
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

}  // namespace nibble
