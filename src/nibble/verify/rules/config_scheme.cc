// What the configuration declares of the weights against what is stored. The stored tensors decide how nibble reads;
// other loaders go by what is declared, and take the bytes for other numbers, or leave layers out, without a word.
// Judged is only what cannot be meant otherwise: settings that are not understood, or presets, say nothing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "nibble/base/strings.h"
#include "nibble/checkpoint/conventions/compressed_tensors_config.h"
#include "nibble/checkpoint/json_scanner.h"
#include "nibble/verify/code_stats.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "config-scheme";

std::string text(const Json& object, const char* key) {
  const Json* found = json_member(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

// The settings in config.json; null where there are none.
const Json* settings_of(const Checkpoint& checkpoint) {
  const Json& config = checkpoint.config();
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (const Json* found = json_member(config, key)) return found;
  }
  const Json* inner = json_member(config, "text_config");
  return inner == nullptr ? nullptr : json_member(*inner, "quantization_config");
}

// What all groups of compressed-tensors declare together; a set is empty if some group leaves it open.
struct Scheme {
  std::set<std::string> formats, types, targets;
  std::set<int64_t> group_sizes;
  bool no_targets = false;  // every list of them is empty
};

void add_targets(const Json& group, Scheme* scheme) {
  const Json* targets = json_member(group, "targets");
  if (targets == nullptr || !targets->is_array()) {
    scheme->targets.insert("?");
    return;
  }
  for (const Json& target : *targets) scheme->targets.insert(target.is_string() ? target.get<std::string>() : "?");
}

Scheme scheme_of(const Json& settings) {
  Scheme scheme;
  const Json* groups = json_member(settings, "config_groups");
  if (groups == nullptr || !groups->is_object()) return scheme;
  bool all_formats = true, all_types = true, all_sizes = true;
  uint64_t count = 0;
  const std::string shared = text(settings, "format");
  for (const Json& group : *groups) {
    if (!group.is_object()) return {};  // a preset
    const Json* weights = json_member(group, "weights");
    if (weights == nullptr) continue;
    ++count;
    const std::string own = text(group, "format"), type = text(*weights, "type");
    const std::string format = own.empty() ? shared : own;
    all_formats = all_formats && !format.empty();
    all_types = all_types && !type.empty();
    scheme.formats.insert(format);
    scheme.types.insert(type);
    const Json* size = json_member(*weights, "group_size");
    all_sizes = all_sizes && size != nullptr && size->is_number_integer();
    if (all_sizes) scheme.group_sizes.insert(size->get<int64_t>());
    add_targets(group, &scheme);
  }
  if (!all_formats) scheme.formats.clear();
  if (!all_types) scheme.types.clear();
  if (!all_sizes) scheme.group_sizes.clear();
  scheme.no_targets = count != 0 && scheme.targets.empty();
  return scheme;
}

class SchemeCheck {
 public:
  SchemeCheck(const VerifyContext& context, Findings* findings)
      : context_(context), weights_(context.model->table.weights()), findings_(findings) {}

  void run() {
    const Json* settings = settings_of(*context_.checkpoint);
    if (settings == nullptr) return;
    const std::string& method = context_.model->table.hints().method;
    if (method == "compressed-tensors")
      compressed_tensors(scheme_of(*settings));
    else
      eight_bit_floats(text(*settings, "fmt"), method);
  }

 private:
  // Calls `stored` (what the weight has, "" if it is not judged) for the weights of the method, and reports the first
  // that has something else than is declared.
  template <typename Stored>
  void compare(const char* key, const std::set<std::string>& declared, const std::string& method,
               const Stored& stored) {
    if (declared.empty()) return;
    for (size_t w = 0; w < weights_.size(); ++w) {
      if (weights_[w].opaque || weights_[w].format.is_dense()) continue;
      const auto methods = weights_[w].convention->methods();
      if (std::ranges::find(methods, method) == methods.end()) continue;
      const std::string found = stored(weights_[w].format);
      if (found.empty() || declared.contains(found)) continue;
      report(w, key, fmt::format("{}", fmt::join(declared, ", ")), found);
      return;
    }
  }

  void report(size_t w, const char* key, const std::string& declared, const std::string& found) {
    findings_->push_back(weight_finding(
        context_, w, Severity::kError, kName,
        fmt::format("the configuration declares `{}` {}, and stored is {}: loaders that go by the configuration read "
                    "other numbers. Correct it, or copy config.json again",
                    key, printable(declared), found),
        {{"key", key},
         {"declared", printable(declared)},
         {"stored", found},
         {"config", context_.model->table.hints().source}}));
  }

  void compressed_tensors(const Scheme& scheme) {
    constexpr const char* kMethod = "compressed-tensors";
    const auto known = [](const std::string& name) {
      return name.ends_with("pack-quantized") || name == "float-quantized";
    };
    if (std::ranges::all_of(scheme.formats, known))
      compare("format", scheme.formats, kMethod, [](const Format& format) {
        const char* name = compressed_tensors_format(format);
        return std::string(name == nullptr ? "" : name);
      });
    compare("type", scheme.types, kMethod, [](const Format& format) {
      return std::string(code_shape(format) == CodeShape::kSignMagnitude ? "float" : "int");
    });
    std::set<std::string> sizes;
    for (const int64_t size : scheme.group_sizes) sizes.insert(std::to_string(size));
    compare("group_size", sizes, kMethod, [](const Format& format) {
      return format.block_rows == 1 && format.block_cols > 0 ? std::to_string(format.block_cols) : std::string();
    });
    targets(scheme);
  }

  // Classes of modules that hold no matrices of linear layers.
  static bool is_other_class(const std::string& target) {
    return starts_with(target, "Conv") || starts_with(target, "Embedding") || target.ends_with("Norm");
  }

  void targets(const Scheme& scheme) {
    const bool others = !scheme.targets.empty() && std::ranges::all_of(scheme.targets, is_other_class);
    if (!others && !scheme.no_targets) return;
    const std::set<std::string> declared =
        scheme.no_targets ? std::set<std::string>{"no module"} : std::set<std::string>(scheme.targets);
    compare("targets", declared, "compressed-tensors", [](const Format&) { return std::string("Linear"); });
  }

  void eight_bit_floats(const std::string& declared, const std::string& method) {
    const auto kind = [](std::string_view name) {
      return name.find("e5m2") != std::string_view::npos   ? "e5m2"
             : name.find("e4m3") != std::string_view::npos ? "e4m3"
                                                           : "";
    };
    const std::string known = kind(declared);
    if (known.empty()) return;
    compare("fmt", {known}, method, [](const Format& format) {
      return std::string(format.element == Element::kE4M3 ? "e4m3" : format.element == Element::kE5M2 ? "e5m2" : "");
    });
  }

  const VerifyContext& context_;
  const std::vector<Weight>& weights_;
  Findings* findings_;
};

// Layers that are stored behind the last one of the configuration. Those of a multi-token prediction show by its parts.
void check_layers(const VerifyContext& context, Findings* findings) {
  const ModelSpec& spec = context.model->spec;
  if (context.model->family == nullptr || spec.layers.empty()) return;
  const std::string prefix = spec.prefix + "layers.";
  const uint64_t declared = spec.layers.size() + (spec.mtp_prefix.empty() ? spec.mtp_layers : 0);
  std::map<uint64_t, size_t> beyond;
  std::set<uint64_t> prediction;
  const auto& weights = context.model->table.weights();
  for (size_t w = 0; w < weights.size(); ++w) {
    const std::string_view name = weights[w].name;
    if (!starts_with(name, prefix) || context.model->params[w].role == Role::kMtp) continue;
    const std::string_view rest = name.substr(prefix.size());
    const auto layer = whole_number(rest.substr(0, rest.find('.')));
    if (!layer || *layer < declared) continue;
    beyond.emplace(*layer, w);
    for (const char* part : {"eh_proj", "enorm", "hnorm", "shared_head"}) {
      if (rest.find(part) != std::string_view::npos) prediction.insert(*layer);
    }
  }
  std::erase_if(beyond, [&](const auto& entry) { return prediction.contains(entry.first); });
  if (beyond.empty()) return;
  findings->push_back(weight_finding(
      context, beyond.begin()->second, Severity::kError, kName,
      fmt::format(
          "the configuration has {} layers, and {} more are stored (this is the first): loaders leave them out. "
          "Correct num_hidden_layers, or remove the layers",
          spec.layers.size(), beyond.size()),
      {{"key", "num_hidden_layers"},
       {"declared", std::to_string(spec.layers.size())},
       {"beyond", std::to_string(beyond.size())}}));
}

void check(const VerifyContext& context, Findings* findings) {
  if (context.checkpoint->container() == Container::kGguf) return;
  SchemeCheck(context, findings).run();
  check_layers(context, findings);
}

}  // namespace

extern const Rule kConfigScheme = {kName, "what the configuration declares of the weights against what is stored",
                                   check};

}  // namespace nibble
