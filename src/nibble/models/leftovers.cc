#include "nibble/models/leftovers.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "nibble/base/strings.h"

namespace nibble {
namespace {

// Behind the attention module's name (FORMATS.md §7.3, and the spellings of C65).
constexpr std::array<std::string_view, 13> kCacheScales{
    "k_scale",        "v_scale",       "q_scale",       "kv_scale",     "prob_scale",          "k_proj.k_scale",
    "v_proj.v_scale", "k_proj.k_bias", "v_proj.v_bias", "attn.k_scale", "k_proj.output_scale", "v_proj.output_scale",
    "attn.v_scale"};
constexpr std::string_view kRotaryTable = "rotary_emb.inv_freq";

// The layer in "PREFIXlayers.N.rest" and that rest; nullopt for names outside layers.
std::optional<std::pair<int32_t, std::string_view>> layer_of(const ModelSpec& spec, std::string_view name) {
  const std::string prefix = spec.prefix + "layers.";
  if (!starts_with(name, prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  int32_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return std::pair{layer, name.substr(static_cast<size_t>(end - name.data()) + 1)};
}

std::optional<ParamSpec> bias_of_known(std::string_view name, const FindParam& find) {
  std::string module(name);
  if (ends_with(name, ".bias")) {
    module.replace(module.size() - 4, 4, "weight");
  } else if (ends_with(name, "_bias")) {  // stacks: gate_up_proj_bias of gate_up_proj
    module.resize(module.size() - 5);
  } else {
    return std::nullopt;
  }
  const ParamSpec* weight = find(module);
  if (weight == nullptr || weight->shape.size() < 2) return std::nullopt;
  ParamSpec bias = *weight;
  bias.shape.pop_back();
  bias.transposed_when_dense = false;
  if (bias.role != Role::kMtp && bias.role != Role::kRouter) bias.role = Role::kBias;
  return bias;
}

}  // namespace

bool is_cache_scale(std::string_view name) {
  return std::any_of(kCacheScales.begin(), kCacheScales.end(), [name](std::string_view spelling) {
    if (!ends_with(name, spelling) || ends_with(spelling, "bias")) return false;
    return ends_with(name.substr(0, name.size() - spelling.size()), "attn.");
  });
}

std::optional<ParamSpec> classify_leftover(const ModelSpec& spec, std::string_view name, const FindParam& find) {
  auto found = bias_of_known(name, find);
  const auto place = layer_of(spec, name);
  if (!found && place) {
    const auto& [layer, rest] = *place;
    const auto count = static_cast<int32_t>(spec.layers.size());
    const size_t dot = rest.find('.');
    const std::string_view inside = dot == std::string_view::npos ? "" : rest.substr(dot + 1);
    const bool attention = starts_with(rest, "self_attn.") || starts_with(rest, "attn.");
    const bool scale = std::find(kCacheScales.begin(), kCacheScales.end(), inside) != kCacheScales.end();
    if (layer < count && attention && (scale || inside == kRotaryTable)) {
      found.emplace();
      found->role = Role::kAttention;
    } else if (layer >= count && layer < count + static_cast<int32_t>(spec.mtp_layers)) {
      found.emplace();
      found->role = Role::kMtp;
    }
    if (found) found->layer = layer;
  }
  if (!found && !spec.mtp_prefix.empty() && starts_with(name, spec.mtp_prefix)) {
    found.emplace();
    found->role = Role::kMtp;
  }
  if (!found && (name == "rope_freqs.weight" || name == spec.prefix + std::string(kRotaryTable))) {
    found.emplace();
    found->role = Role::kAttention;
  }
  if (found) {
    found->name = name;
    found->optional = true;
  }
  return found;
}

}  // namespace nibble
