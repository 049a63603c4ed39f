#include "nibble/checkpoint/declared_sizes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "nibble/base/json.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/checkpoint.h"

namespace nibble {
namespace {

// Activations and caches have sizes of their own; lists of names and free-form settings have none.
constexpr std::array<std::string_view, 8> kSkipped = {
    "input_activations", "output_activations", "kv_cache_scheme",        "ignore",
    "exclude_modules",   "ignored_layers",     "modules_to_not_convert", "observer_kwargs"};

template <typename T>
void insert(std::vector<T>* sorted, const T& value) {
  const auto at = std::lower_bound(sorted->begin(), sorted->end(), value);
  if (at == sorted->end() || *at != value) sorted->insert(at, value);
}

std::optional<int64_t> small_int(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{1} << 40) return std::nullopt;
  return value.get<int64_t>();
}

// [rows, columns], or the older text "128x128".
std::optional<std::pair<uint64_t, uint64_t>> block_of(const Json& value) {
  std::array<uint64_t, 2> sides{};
  if (value.is_array() && value.size() == 2) {
    for (size_t i = 0; i < 2; ++i) {
      const auto side = small_int(value[i]);
      if (!side || *side <= 0) return std::nullopt;
      sides[i] = static_cast<uint64_t>(*side);
    }
    return std::pair(sides[0], sides[1]);
  }
  if (!value.is_string()) return std::nullopt;
  const std::string text = value.get<std::string>();
  const auto parts = split(text, 'x');
  if (parts.size() != 2) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const auto [end, error] = std::from_chars(parts[i].data(), parts[i].data() + parts[i].size(), sides[i]);
    if (error != std::errc() || end != parts[i].data() + parts[i].size() || sides[i] == 0) return std::nullopt;
  }
  return std::pair(sides[0], sides[1]);
}

// Presets "W4A16", "W8A16_ASYM" … stand for integers in groups of 128 (FORMATS.md §4.1).
void add_preset(std::string_view name, DeclaredSizes* sizes) {
  if (name.size() < 5 || name[0] != 'W' || name[1] < '1' || name[1] > '8' || name[2] != 'A') return;
  insert(&sizes->bits, static_cast<uint64_t>(name[1] - '0'));
  insert(&sizes->group_sizes, int64_t{128});
}

// NOLINTNEXTLINE(misc-no-recursion): parse_json refuses nesting above 64
void collect(const Json& value, DeclaredSizes* sizes) {
  if (value.is_array()) {
    for (const auto& item : value) collect(item, sizes);
    return;
  }
  if (!value.is_object()) return;
  for (const auto& [key, member] : value.items()) {
    if (std::find(kSkipped.begin(), kSkipped.end(), key) != kSkipped.end()) continue;
    if (key == "group_size" || key == "q_group_size") {
      if (const auto size = small_int(member); size && (*size > 0 || *size == -1)) insert(&sizes->group_sizes, *size);
    } else if (key == "bits" || key == "num_bits" || key == "w_bit") {
      if (const auto bits = small_int(member); bits && *bits > 0) insert(&sizes->bits, static_cast<uint64_t>(*bits));
    } else if (key == "weight_block_size" || key == "block_structure") {
      if (const auto block = block_of(member)) insert(&sizes->blocks, *block);
    } else if (key == "symmetric" || key == "sym") {
      if (member.is_boolean()) (member.get<bool>() ? sizes->symmetric : sizes->asymmetric) = true;
    } else if (key == "strategy") {
      if (member == "channel") insert(&sizes->group_sizes, int64_t{-1});
    } else if (key == "config_groups" && member.is_object()) {
      for (const auto& [name, group] : member.items()) {
        if (group.is_array()) add_preset(name, sizes);
      }
      collect(member, sizes);
    } else {
      collect(member, sizes);
    }
  }
}

std::string method_of(const Json& settings, std::string fallback) {
  const auto method = settings.find("quant_method");
  if (method == settings.end() || !method->is_string()) {
    // Older exports leave it out; the keys tell whose they are.
    if (settings.contains("quant_algo")) return "modelopt";
    if (settings.contains("config_groups")) return "compressed-tensors";
    return fallback;
  }
  std::string text = method->get<std::string>();
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

void add_carrier(const Json& settings, std::string source, std::string method, std::vector<DeclaredSizes>* out) {
  if (!settings.is_object()) return;
  DeclaredSizes sizes;
  sizes.source = std::move(source);
  sizes.method = method_of(settings, std::move(method));
  collect(settings, &sizes);
  out->push_back(std::move(sizes));
}

void add_from_config(const Json& config, std::vector<DeclaredSizes>* out) {
  if (!config.is_object()) return;
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (const auto at = config.find(key); at != config.end()) add_carrier(*at, "config.json", "", out);
  }
  for (const auto& [name, member] : config.items()) {
    if (!member.is_object() || name == "quantization_config") continue;
    if (const auto at = member.find("quantization_config"); at != member.end())
      add_carrier(*at, "config.json", "", out);
  }
}

}  // namespace

std::vector<DeclaredSizes> declared_sizes(const Checkpoint& checkpoint) {
  std::vector<DeclaredSizes> out;
  add_from_config(checkpoint.config(), &out);
  const Json& side = checkpoint.side_config();
  if (side.is_object()) {
    // hf_quant_config.json wraps its settings; quantize_config.json is the settings.
    const auto wrapped = side.find("quantization");
    if (wrapped != side.end()) {
      add_carrier(*wrapped, checkpoint.side_config_name(), "modelopt", &out);
    } else {
      add_carrier(side, checkpoint.side_config_name(), "gptq", &out);
    }
  }
  return out;
}

}  // namespace nibble
