// What Ling's generations share under the vendor's own names: word_embeddings, the router's expert_bias, MTP layers.
#pragma once

#include <cstdint>
#include <optional>

#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble {

// Experts, DeepSeek's router, width of the shared experts, first layers dense (`default_dense`: as of
// parse_dense_first), MTP.
void parse_bailing_moe(const ConfigReader& config, ModelSpec* spec,
                       std::optional<uint64_t> default_dense = std::nullopt);

void add_word_embeddings(Inventory* out);
// mlp, dense or MoE.
void add_bailing_mlp(Inventory* out, MlpKind kind);
// enorm, hnorm, eh_proj, final_layernorm.
void add_bailing_mtp_glue(Inventory* out);

}  // namespace nibble
