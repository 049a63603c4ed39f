// Pieces of configurations that many families share. Each reads its keys into the spec and refuses what is missing or
// contradictory (config_reader.h); a family's parse() is a list of these and of what is its own.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "nibble/models/config_reader.h"
#include "nibble/models/family.h"

namespace nibble {

// A family whose names are fixed lists.
class NamedFamily : public Family {
 public:
  NamedFamily(std::string_view name, std::vector<std::string_view> model_types,
              std::vector<std::string_view> architectures)
      : name_(name), model_types_(std::move(model_types)), architectures_(std::move(architectures)) {}
  std::string_view name() const override { return name_; }
  std::span<const std::string_view> model_types() const override { return model_types_; }
  std::span<const std::string_view> architectures() const override { return architectures_; }

 protected:
  // A spec with family, model_type, prefix, sizes, norms, ties, dtype and positions; all layers are as LayerSpec's
  // defaults say. `default_eps` 0: rms_norm_eps is required.
  ModelSpec parse_decoder(const ConfigReader& config, std::string_view prefix, double default_eps = 0) const;

 private:
  std::string_view name_;
  std::vector<std::string_view> model_types_, architectures_;
};

// rope_parameters (newer files) or rope_theta and rope_scaling. `default_theta` 0: the key is required.
RopeSpec parse_rope(const ConfigReader& config, double default_theta = 0);
// The scaling alone: rope_type and what belongs to it.
void parse_rope_scaling(const ConfigReader& scaling, RopeSpec* rope);

// num_attention_heads, num_key_value_heads, head_dim (default H / heads), attention_bias.
void parse_gqa(const ConfigReader& config, ModelSpec* spec);
// Error unless query heads are a multiple of key/value heads, which stand under these keys.
void check_head_groups(const ConfigReader& config, const char* heads_key, uint64_t heads, const char* kv_heads_key,
                       uint64_t kv_heads);
// num_attention_heads and the ranks and widths of multi-head latent attention; all layers kMla.
void parse_mla(const ConfigReader& config, ModelSpec* spec);
void parse_indexer(const ConfigReader& config, ModelSpec* spec);

// Experts, top-k and the experts' width under the field's several names; bounds layers · experts.
void parse_experts(const ConfigReader& config, ModelSpec* spec);
// Groups, scaling, normalisation and shared experts of DeepSeek's router, which GLM and Kimi took over. Models without
// shared experts say so.
void parse_deepseek_router(const ConfigReader& config, ModelSpec* spec);
// first_k_dense_replace, moe_layer_freq or mlp_layer_types: which layers are MoE. The first or the last of them has to
// be there, unless the field's library takes `default_first` dense layers for granted.
void parse_dense_first(const ConfigReader& config, ModelSpec* spec,
                       std::optional<uint64_t> default_first = std::nullopt);
// decoder_sparse_step, mlp_only_layers, intermediate_size: which layers are MoE (Qwen's way to say it).
void parse_sparse_step(const ConfigReader& config, ModelSpec* spec);

// moe_layer_freq as a list: 1 for a MoE layer, 0 for a dense one, whose width stands under `dense_key`. False if there
// is no such key.
bool parse_moe_list(const ConfigReader& config, const char* dense_key, ModelSpec* spec);

// layer_types: "sliding_attention" layers get `window`, "full_attention" none. False if there is no such key.
bool parse_sliding_layers(const ConfigReader& config, uint64_t window, ModelSpec* spec);
// num_nextn_predict_layers, num_mtp_layers or mtp_num_hidden_layers; after parse_experts, whose bound it repeats.
void parse_mtp(const ConfigReader& config, ModelSpec* spec);

// bfloat16, float16, float32, float64 ("torch." before it or not); BF16 if the configuration does not say.
Element parse_dtype(const ConfigReader& config);

}  // namespace nibble
