#include "nibble/models/families/common_indexer.h"

namespace nibble {

std::optional<std::vector<bool>> parse_indexer_types(const ConfigReader& config, uint64_t layers) {
  const auto kinds = config.texts("indexer_types", layers);
  if (!kinds) return std::nullopt;
  std::vector<bool> own;
  for (const std::string& kind : *kinds) {
    if (kind != "full" && kind != "shared")
      throw config.refuse("an entry of `indexer_types` is unknown")
          .value("layer", own.size())
          .value("entry", kind)
          .way_out("use a release of nibble that knows this kind of layer");
    own.push_back(kind == "full");
  }
  return own;
}

void set_indexers(const ConfigReader& config, const std::vector<bool>& own, ModelSpec* spec) {
  if (!own.front())
    throw config.refuse("the first layer shares an earlier layer's choice of keys (`indexer_types`)")
        .value("layer", 0)
        .way_out("take config.json from the same release as the weights");
  for (size_t i = 0; i < spec->layers.size(); ++i) {
    spec->layers[i].indexer = own[i];
    spec->layers[i].chosen_keys = true;
  }
}

void add_indexer(Inventory* out) {
  const ModelSpec& spec = out->spec();
  const IndexerSpec& indexer = spec.indexer;
  const auto layer = static_cast<size_t>(out->layer());
  if (indexer.heads == 0 || (layer < spec.layers.size() && !spec.layers[layer].indexer)) return;
  out->linear("self_attn.indexer.wq_b", Role::kAttention, indexer.heads * indexer.head_dim, spec.q_lora_rank,
              Projection::kOther);
  out->linear("self_attn.indexer.wk", Role::kAttention, indexer.head_dim, spec.hidden, Projection::kOther);
  out->norm("self_attn.indexer.k_norm", indexer.head_dim);
  out->add("self_attn.indexer.k_norm.bias", Role::kNorm, {indexer.head_dim});
  out->linear("self_attn.indexer.weights_proj", Role::kAttention, indexer.heads, spec.hidden, Projection::kOther);
}

}  // namespace nibble
