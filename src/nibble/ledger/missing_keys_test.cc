// What a configuration does not say is no count: every bundled configuration without each of its keys in turn is either
// refused or counted as before. Where the library that the field loads these models with takes the value for granted,
// so do we: those keys are listed, with what it takes.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/ledger/kv_cache.h"
#include "nibble/ledger/param_counts.h"
#include "nibble/models/bundled_models.h"
#include "nibble/models/stacked_inventory.h"

namespace nibble {
namespace {

// By family and key; "*": all families.
using Key = std::pair<std::string, std::string>;
const std::map<Key, std::string>& taken_for_granted() {
  static const std::map<Key, std::string> kKeys{
      {{"*", "num_nextn_predict_layers"}, "none: releases without MTP layers leave it out (GLM-4.5-Air)"},
      {{"qwen3_5_moe", "mtp_num_hidden_layers"}, "none: transformers loads no MTP layers"},
      {{"qwen4_exp", "mtp_num_hidden_layers"}, "none: transformers loads no MTP layers"},
      {{"inkling", "mtp_config"}, "no MTP layers"},
      {{"inkling", "unpadded_vocab_size"}, "the head has a row for each entry of the vocabulary"},
      {{"inkling", "dense_mlp_idx"}, "no dense layers"},
      {{"gemma4", "attention_k_eq_v"}, "false"},
      {{"gemma4", "enable_moe_block"}, "false"},
      {{"gemma4", "num_global_key_value_heads"}, "those of sliding layers"},
      {{"glm4_moe", "attention_bias"}, "false"},
      {{"glm4_moe", "use_qk_norm"}, "false"},
      {{"glm5_next", "index_kpool"}, "16"},
      {{"llama4", "interleave_moe_layer_step"}, "1"},
      {{"nemotron_h", "moe_latent_size"}, "experts as wide as the model"},
      {{"qwen3_moe", "head_dim"}, "H over the heads"},
      {{"step3p7", "num_sliding_attention_heads"}, "those of full layers"}};
  return kKeys;
}

using Path = std::vector<std::string>;

// Parts that say nothing of the text model's shape.
bool is_aside(const std::string& key) {
  return key == "vision_config" || key == "audio_config" || key == "quantization_config";
}

void collect(const Json& object, const Path& before, std::vector<Path>* paths) {
  for (const auto& [key, value] : object.items()) {
    if (is_aside(key)) continue;
    Path path = before;
    path.push_back(key);
    if (value.is_object()) collect(value, path, paths);
    paths->push_back(std::move(path));
  }
}

Json without(const Json& config, const Path& path) {
  Json changed = config;
  Json* at = &changed;
  for (size_t i = 0; i + 1 < path.size(); ++i) at = &(*at)[path[i]];
  at->erase(path.back());
  return changed;
}

using Counts = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t, double, uint64_t>;

Counts counts_of(const Family& family, const ModelSpec& spec) {
  const ParamCounts counts = count_params(spec, stacked_inventory(family, spec));
  const KvCache cache(spec);
  return {
      counts.total, counts.active, counts.routed, counts.mtp, cache.bytes_per_token(2), cache.bytes_per_sequence(2)};
}

// Is it counted otherwise than before? Refusals are none.
bool guesses(const Json& changed, const ModelSpec& spec, const Counts& counts) try {
  const Family* family = find_family(changed);
  if (family == nullptr) return false;
  const ModelSpec other = family->parse(changed, "changed");
  return !(other == spec) && counts_of(*family, other) != counts;
} catch (const Error&) {
  return false;
}

TEST(MissingKeys, are_refused_or_change_no_count) {
  std::set<Key> used;
  for (const EmbeddedFile& file : bundled_models()) {
    const Json config = parse_json(file.text, std::string(file.name));
    const Family& family = *find_family(config);
    const ModelSpec spec = family.parse(config, std::string(file.name));
    const Counts counts = counts_of(family, spec);
    std::vector<Path> paths;
    collect(config, {}, &paths);
    for (const Path& path : paths) {
      if (!guesses(without(config, path), spec, counts)) continue;
      Key key{std::string(family.name()), path.back()};
      if (!taken_for_granted().contains(key)) key.first = "*";
      used.insert(key);
      EXPECT_TRUE(taken_for_granted().contains(key)) << file.name << " without " << path.back();
    }
  }
  for (const auto& [key, value] : taken_for_granted())
    EXPECT_TRUE(used.contains(key)) << key.first << " " << key.second << " is not taken to be: " << value;
}

}  // namespace
}  // namespace nibble
