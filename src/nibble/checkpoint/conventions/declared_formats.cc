#include "nibble/checkpoint/conventions/declared_formats.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/conventions/declared_schemes.h"

namespace nibble {
namespace {

// Releases have up to six expressions and two groups. What is beyond these would take seconds for a model's names.
constexpr uint64_t kMostExpressions = 256, kMostSteps = 20'000, kMostGroups = 64;

constexpr std::string_view kExcludedKeys = "ignore / exclude_modules / modules_to_not_convert / ignored_layers";

// Name without "language_model." where that is a component.
std::string without_wrapper(std::string_view name) {
  constexpr std::string_view kWrapper = "language_model.";
  const size_t at = name.find(kWrapper);
  if (at == std::string_view::npos || (at != 0 && name[at - 1] != '.')) return std::string(name);
  return std::string(name.substr(0, at)).append(name.substr(at + kWrapper.size()));
}

std::vector<std::string> without_wrappers(const std::vector<std::string>& entries, const std::string& key,
                                          const std::string& source) {
  std::vector<std::string> names;
  names.reserve(entries.size());
  uint64_t expressions = 0;
  for (const std::string& entry : entries) {
    const bool expression = starts_with(entry, "re:");
    if (expression && ++expressions > kMostExpressions)
      throw Error("a list of modules has too many regular expressions")
          .file(source)
          .value("key", key)
          .value("most", kMostExpressions)
          .way_out("join them, or list names");
    names.push_back(expression ? entry : without_wrapper(entry));
  }
  return names;
}

bool is_routed_expert(std::string_view module) {
  return starts_with(module, "experts.") || module.find(".experts.") != std::string_view::npos;
}

std::string_view last_component(std::string_view module) { return module.substr(module.rfind('.') + 1); }

bool is_head(std::string_view module) {
  const std::string_view last = last_component(module);
  return last == "lm_head" || last == "head";
}

// What releases of the DeepSeek family keep in 16 bits without listing it: an indexer's weights of its heads and the
// compression of keys. DeepSeek-V4-Flash has 34,167 scales, and these have none.
bool is_kept_unlisted(std::string_view module) {
  return last_component(module) == "weights_proj" || module.find(".compressor.") != std::string_view::npos;
}

}  // namespace

ModuleNames::ModuleNames(const std::vector<std::string>& entries, bool loose, const std::string& key,
                         const std::string& source)
    : list_(without_wrappers(entries, key, source), loose),
      loose_(loose),
      has_expressions_(std::ranges::any_of(entries, [](const std::string& e) { return starts_with(e, "re:"); })) {
  if (!list_.invalid().empty())
    throw Error("a list of modules holds what is no regular expression")
        .file(source)
        .value("key", key)
        .value("entry", list_.invalid().front())
        .way_out("correct the entry");
  if (list_.cost() > kMostSteps)
    throw Error("a list of modules would take too long to compare names with")
        .file(source)
        .value("key", key)
        .value("steps_per_byte", list_.cost())
        .value("most", kMostSteps)
        .way_out("list names, or wildcards that begin differently");
}

bool ModuleNames::covers(std::string_view module) const {
  return !(loose_ ? list_.covering_part(module) : list_.covering(module)).empty();
}

bool ModuleNames::cover(std::string_view module, std::string_view without_wrapper) const {
  if (covers(without_wrapper)) return true;
  return has_expressions_ && module != without_wrapper && covers(module);
}

DeclaredFormats::DeclaredFormats(const Json& config, const std::string& source_name)
    : DeclaredFormats(config, source_name, Json(), "") {}

DeclaredFormats::DeclaredFormats(const Json& config, const std::string& source_name, const Json& side_config,
                                 const std::string& side_name) {
  Findings findings;
  const QuantHints hints = read_quant_hints(config, source_name, side_config, side_name, &findings);
  throw_first_error(findings);
  if (!hints.source.empty()) read(hints);
}

void DeclaredFormats::read(const QuantHints& hints) {
  const std::string& method = hints.method;
  if (method == "fp8" || method == "mxfp8") {
    const bool partly = !hints.algorithm.empty();
    if (partly) add_modelopt(hints);
    add_uniform(hints, expert_format(hints), eight_bit_format(hints), !partly);
    return;
  }
  if (!hints.store_dtype.empty()) throw unknown_setting(hints.source, "store_dtype", hints.store_dtype);
  if (method == "compressed-tensors") {
    add_compressed_tensors(hints);
  } else if (method == "modelopt") {
    add_modelopt(hints);
  } else if (method == "mxfp4") {
    add_uniform(hints, algorithm_format("MXFP4", std::nullopt, "quant_method", hints.source), std::nullopt, true);
  } else if (method == "awq" || method == "gptq") {
    add_uniform(hints, std::nullopt, word_packed_format(hints), true);
  } else {
    throw unknown_setting(hints.source, "quant_method", method.empty() ? "missing" : method);
  }
}

void DeclaredFormats::add_uniform(const QuantHints& hints, std::optional<Format> experts, std::optional<Format> rest,
                                  bool exclude) {
  Layer layer;
  if (exclude && !hints.excluded.empty())
    layer.excluded.emplace_back(hints.excluded, true, std::string(kExcludedKeys), hints.source);
  layer.experts = std::move(experts);
  layer.rest = std::move(rest);
  layers_.push_back(std::move(layer));
}

// A group names modules or a class of them; of classes only that of all linear layers says which modules it means.
void DeclaredFormats::add_groups(const QuantHints& hints, bool loose, Layer* layer) {
  if (hints.groups.size() > kMostGroups)
    throw unknown_setting(hints.source, "config_groups", std::to_string(hints.groups.size()) + " groups");
  for (const QuantGroup& group : hints.groups) {
    const std::string key = "config_groups." + group.name + ".targets";
    const Format format = group_format(group, hints.source);
    std::vector<std::string> names;
    for (const std::string& target : group.targets) {
      if (target == "Linear") {
        if (layer->rest && *layer->rest != format)
          throw unknown_setting(hints.source, key, "Linear, which another group has in another format");
        layer->rest = format;
      } else if (!target.empty() && target[0] >= 'A' && target[0] <= 'Z') {
        throw unknown_setting(hints.source, key, target);
      } else {
        names.push_back(target);
      }
    }
    if (!names.empty()) layer->named.emplace_back(ModuleNames(names, loose, key, hints.source), format);
  }
}

void DeclaredFormats::add_compressed_tensors(const QuantHints& hints) {
  if (hints.groups.empty()) throw unknown_setting(hints.source, "config_groups", "no group that quantizes weights");
  Layer layer;
  layer.unlisted_too = true;
  if (!hints.excluded.empty())
    layer.excluded.emplace_back(hints.excluded, false, std::string(kExcludedKeys), hints.source);
  add_groups(hints, false, &layer);
  layers_.push_back(std::move(layer));
}

void DeclaredFormats::add_quantized_layers(const QuantHints& hints, Layer* layer) {
  std::vector<std::pair<Format, std::vector<std::string>>> formats;
  for (const QuantLayer& one : hints.layers) {
    const Format format = algorithm_format(one.algorithm, one.group_size, "quantized_layers." + one.name, hints.source);
    auto at = std::ranges::find(formats, format, &std::pair<Format, std::vector<std::string>>::first);
    if (at == formats.end()) at = formats.insert(at, {format, {}});
    at->second.push_back(one.name);
  }
  for (auto& [format, names] : formats)
    layer->named.emplace_back(ModuleNames(names, true, "quantized_layers", hints.source), std::move(format));
}

void DeclaredFormats::add_modelopt(const QuantHints& hints) {
  const std::string& source = hints.source;
  const std::optional<int64_t> size = hints.group_size;
  Layer layer;
  if (!hints.excluded.empty()) layer.excluded.emplace_back(hints.excluded, true, std::string(kExcludedKeys), source);
  if (hints.algorithm != "MIXED_PRECISION" && !hints.algorithm.empty()) {
    layer.rest = algorithm_format(hints.algorithm, size, "quant_algo", source);
  } else if (!hints.layers.empty()) {
    add_quantized_layers(hints, &layer);
  } else if (!hints.expert_algorithm.empty()) {
    layer.experts = algorithm_format(hints.expert_algorithm, size, "moe_quant_algo", source);
  } else if (!hints.groups.empty()) {
    add_groups(hints, true, &layer);
  } else {
    throw unknown_setting(source, "quant_algo",
                          hints.algorithm.empty() ? "missing" : hints.algorithm + " without quantized_layers");
  }
  layers_.push_back(std::move(layer));
}

std::optional<Format> DeclaredFormats::ask(const Layer& layer, std::string_view module,
                                           std::string_view without_wrapper, bool all) {
  if (!layer.excluded.empty() && layer.excluded.front().cover(module, without_wrapper)) return std::nullopt;
  for (const auto& [names, format] : layer.named) {
    if (names.cover(module, without_wrapper)) return format;
  }
  if (!all) return std::nullopt;
  if (layer.experts && is_routed_expert(without_wrapper)) return layer.experts;
  if (!layer.unlisted_too && (is_head(without_wrapper) || is_kept_unlisted(without_wrapper))) return std::nullopt;
  return layer.rest;
}

std::optional<Format> DeclaredFormats::ask(std::string_view module, bool all) const {
  const std::string name = without_wrapper(module);
  for (const Layer& layer : layers_) {
    if (auto format = ask(layer, module, name, all)) return format;
  }
  return std::nullopt;
}

}  // namespace nibble
