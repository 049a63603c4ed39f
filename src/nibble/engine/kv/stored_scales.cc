#include "nibble/engine/kv/stored_scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "nibble/base/error.h"

namespace nibble {
namespace {

constexpr std::string_view kKeys[] = {"k_scale", "k_proj.k_scale", "k_proj.output_scale", "attn.k_scale", "kv_scale"};
constexpr std::string_view kValues[] = {"v_scale", "v_proj.v_scale", "v_proj.output_scale", "attn.v_scale", "kv_scale"};
constexpr std::string_view kBiases[] = {"k_proj.k_bias", "v_proj.v_bias"};

class Reader {
 public:
  Reader(const Checkpoint& checkpoint, const Model& model) : checkpoint_(checkpoint), model_(model) {}

  // The scales of one layer by the first spelling that is there; all that are there must agree.
  std::vector<float> find(uint64_t layer, std::span<const std::string_view> spellings) {
    std::vector<float> scales;
    std::string from;
    for (const std::string_view spelling : spellings) {
      const std::string name = name_of(layer, spelling);
      const Weight* weight = weight_of(name);
      if (weight == nullptr) continue;
      std::vector<float> these = read(*weight, layer);
      if (from.empty()) {
        scales = std::move(these);
        from = name;
      } else if (these != scales) {
        throw refuse("two scales of the same keys or values differ", name).value("other", from);
      }
    }
    return scales;
  }

  void refuse_biases(uint64_t layer) {
    for (const std::string_view spelling : kBiases) {
      const std::string name = name_of(layer, spelling);
      const Weight* weight = weight_of(name);
      if (weight == nullptr) continue;
      for (const float bias : all_of(*weight)) {
        if (bias != 0) throw refuse("the cache adds no bias to its keys and values", name).value("bias", bias);
      }
    }
  }

  Error refuse(const std::string& why, const std::string& tensor) const {
    Error error(why);
    error.file(checkpoint_.path().string()).tensor(tensor);
    error.way_out("--kv-scale dynamic takes each token's own scale").way_out("--kv bf16 takes none");
    return error;
  }

  std::string name_of(uint64_t layer, std::string_view spelling) const {
    return model_.spec.layer_prefix(static_cast<int32_t>(layer)) + "self_attn." + std::string(spelling);
  }

 private:
  const Weight* weight_of(const std::string& name) const {
    const int64_t index = model_.table.find(name);
    return index < 0 ? nullptr : &model_.table.weights()[static_cast<size_t>(index)];
  }

  std::vector<float> all_of(const Weight& weight) const {
    if (weight.opaque || !weight.format.is_dense() || weight.slices() != 1) {
      throw refuse("a scale of the cache is no number", weight.name);
    }
    return read_rows_f32(checkpoint_, weight, 0, 0, weight.rows());
  }

  std::vector<float> read(const Weight& weight, uint64_t layer) const {
    const LayerSpec& spec = model_.spec.layers[layer];
    const uint64_t heads = spec.attention == AttentionKind::kMla ? 1 : model_.spec.attention_shape(spec).kv_heads;
    if (weight.elements() != 1 && weight.elements() != heads) {
      throw refuse("scales of the cache are neither one nor one a head", weight.name)
          .value("scales", weight.elements())
          .value("heads", heads);
    }
    std::vector<float> scales = all_of(weight);
    for (const float scale : scales) {
      if (scale > 0 && std::isfinite(scale)) continue;
      throw refuse("a scale of the cache is not above zero", weight.name).value("scale", scale);
    }
    return scales;
  }

  const Checkpoint& checkpoint_;
  const Model& model_;
};

}  // namespace

std::vector<CacheScales> stored_cache_scales(const Checkpoint& checkpoint, const Model& model) {
  Reader reader(checkpoint, model);
  std::vector<CacheScales> scales;
  std::string first_missing;
  uint64_t complete = 0;
  for (uint64_t i = 0; i < model.spec.layers.size(); ++i) {
    const bool latent = model.spec.layers[i].attention == AttentionKind::kMla;
    CacheScales own{reader.find(i, kKeys), latent ? std::vector<float>{} : reader.find(i, kValues)};
    if (!own.keys.empty() && (latent || !own.values.empty())) {
      ++complete;
      reader.refuse_biases(i);
    } else if (first_missing.empty() || !own.keys.empty() || !own.values.empty()) {
      first_missing = reader.name_of(i, own.keys.empty() ? kKeys[0] : kValues[0]);
    }
    scales.push_back(std::move(own));
  }
  if (complete == scales.size()) return scales;
  const bool none = std::all_of(scales.begin(), scales.end(),
                                [](const CacheScales& own) { return own.keys.empty() && own.values.empty(); });
  if (none) return {};
  throw reader.refuse("some layers have scales of the cache, and others have none", first_missing)
      .value("layers", scales.size())
      .value("with_scales", complete);
}

ChosenCacheScales choose_cache_scales(const std::optional<std::string>& asked, CacheElement element,
                                      const std::string& source, const Checkpoint& checkpoint, const Model& model) {
  if (element != CacheElement::kE4M3) return {"none", {}};
  if (asked == "dynamic") return {"dynamic", {}};
  if (asked == "1") return {"1", {CacheScales{{1.0F}, {1.0F}}}};
  std::vector<CacheScales> stored = stored_cache_scales(checkpoint, model);
  if (!stored.empty()) return {"checkpoint", std::move(stored)};
  throw Error("the checkpoint has no scales for 8-bit keys and values")
      .file(source)
      .value("layers", model.spec.layers.size())
      .value("scales", 0)
      .way_out("--kv-scale dynamic: each token's own")
      .way_out("--kv-scale 1: one for all, which clamps at 448")
      .way_out("--kv bf16: no scales");
}

}  // namespace nibble
