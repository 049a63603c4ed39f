// Scales of 8-bit keys and values that a checkpoint brings along, in every spelling of FORMATS §7.3 and C65:
//
//   keys     self_attn.k_scale, k_proj.k_scale, k_proj.output_scale, attn.k_scale, kv_scale
//   values   self_attn.v_scale, v_proj.v_scale, v_proj.output_scale, attn.v_scale, kv_scale
//
// stored = E4M3(x / scale), x ≈ stored · scale. Of a latent layer the keys' scale alone is used.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nibble/engine/kv/paged_cache.h"
#include "nibble/models/model.h"

namespace nibble {

// One for each layer; empty if the checkpoint has none at all. Error naming the tensor and the numbers where a layer
// has none and others do, where two spellings contradict each other, for a number of scales that is neither one nor the
// layer's heads, for one that is not above zero, and for biases (k_proj.k_bias …), which the cache does not add.
std::vector<CacheScales> stored_cache_scales(const Checkpoint& checkpoint, const Model& model);

struct ChosenCacheScales {
  std::string name;                 // "none", "dynamic", "1", "checkpoint"
  std::vector<CacheScales> scales;  // as EngineOptions takes them
};

// As `--kv-scale` asks: checkpoint, dynamic (each token's own) or 1. Without a word the checkpoint's own: where it has
// none nothing is taken silently, since 1.0 clamps at 448 and costs small values their bits; that is an Error naming
// the choices.
ChosenCacheScales choose_cache_scales(const std::optional<std::string>& asked, CacheElement element,
                                      const std::string& source, const Checkpoint& checkpoint, const Model& model);

}  // namespace nibble
