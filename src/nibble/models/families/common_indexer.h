// The indexer of sparse attention (DeepSeek-V3.2 and what follows it): a small head that chooses the keys which
// attention reads. Some models have one in every layer, others let a layer read what an earlier one chose.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nibble/models/families/common_blocks.h"
#include "nibble/models/families/common_config.h"

namespace nibble {

// `indexer_types`, one entry a layer: "full" (true) has an indexer, "shared" reads the choice of the nearest layer
// before it that has. Nothing if there is no such key.
std::optional<std::vector<bool>> parse_indexer_types(const ConfigReader& config, uint64_t layers);
// Sets LayerSpec::indexer and chosen_keys. Error if the first layer has nothing to read.
void set_indexers(const ConfigReader& config, const std::vector<bool>& own, ModelSpec* spec);

// self_attn.indexer.{wq_b, wk, k_norm with bias, weights_proj} if the current layer has one; MTP layers do if any has.
void add_indexer(Inventory* out);

}  // namespace nibble
