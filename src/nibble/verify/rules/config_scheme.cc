// What the configuration declares of the weights against what is stored. The stored tensors decide how nibble reads;
// other loaders go by what is declared, and take the bytes for other numbers, or leave layers out, without a word.
// Judged is only what cannot be meant otherwise: settings that are not understood, or presets, say nothing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/conventions/declared_formats.h"
#include "nibble/checkpoint/conventions/declared_schemes.h"
#include "nibble/checkpoint/declared_sizes.h"
#include "nibble/checkpoint/json_scanner.h"
#include "nibble/verify/code_stats.h"
#include "nibble/verify/declared_scheme.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "config-scheme";

// In lower case; "" if it is absent or no text.
std::string lower_text(const Json& object, const char* key) {
  const Json* found = json_member(object, key);
  std::string text = found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

class SchemeCheck {
 public:
  SchemeCheck(const VerifyContext& context, Findings* findings)
      : context_(context),
        weights_(context.model->table.weights()),
        method_(context.model->table.hints().method),
        findings_(findings) {
    for (const DeclaredSizes& sizes : declared_sizes(*context.checkpoint)) {
      if (sizes.method == method_) blocks_.insert(blocks_.end(), sizes.blocks.begin(), sizes.blocks.end());
    }
  }

  void run() {
    const Json* settings = quantization_settings(*context_.checkpoint);
    if (settings == nullptr) return;
    if (method_ == "compressed-tensors")
      compressed_tensors(declared_scheme(*settings));
    else
      eight_bit_floats(*settings);
  }

  // What ModelOpt's algorithm, or that of a layer, makes of a weight against what is stored. Its loaders choose by the
  // name alone.
  void algorithms() {
    if (method_ != "modelopt") return;
    const Checkpoint& checkpoint = *context_.checkpoint;
    std::optional<DeclaredFormats> declared;
    try {
      declared.emplace(checkpoint.config(), "config.json", checkpoint.side_config(), checkpoint.side_config_name());
    } catch (const Error&) {
      return;  // settings that are not understood say nothing
    }
    for_each([&](size_t w) {
      const Weight& weight = weights_[w];
      const auto format = declared->of(without_suffix(weight.name, ".weight"));
      if (!format || reads_alike(*format, weight)) return false;
      report(w, "quant_algo", format->name, weight.format.name);
      return true;
    });
  }

 private:
  using Texts = std::set<std::string>;

  // Calls visit(weight) for the quantized weights of the method until it returns true.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (size_t w = 0; w < weights_.size(); ++w) {
      if (is_quantized_by(weights_[w], method_) && visit(w)) return;
    }
  }

  // `stored` tells what a weight may be declared as ({} if it is not judged). Reports the first that is declared as
  // something else.
  template <typename Stored>
  void compare(const char* key, const Texts& declared, const Stored& stored) {
    if (declared.empty()) return;
    for_each([&](size_t w) {
      const Texts found = stored(weights_[w]);
      const auto is_declared = [&](const std::string& value) { return declared.contains(value); };
      if (found.empty() || std::ranges::any_of(found, is_declared)) return false;
      report(w, key, fmt::format("{}", fmt::join(declared, ", ")), fmt::format("{}", fmt::join(found, " or ")));
      return true;
    });
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

  void compressed_tensors(const DeclaredScheme& scheme) {
    if (!scheme.understood) return;
    if (scheme.groups == 0)
      return compare("config_groups", {"no scheme"}, [](const Weight& weight) { return Texts{weight.format.name}; });
    const auto known = [](const std::string& name) { return name.ends_with("-quantized") || name == "dense"; };
    if (std::ranges::all_of(scheme.formats, known))
      compare("format", scheme.formats,
              [this](const Weight& weight) { return formats_of(*context_.checkpoint, weight); });
    compare("type", scheme.types, [](const Weight& weight) {
      return Texts{code_shape(weight.format) == CodeShape::kSignMagnitude ? "float" : "int"};
    });
    compare("num_bits", scheme.bits,
            [](const Weight& weight) { return Texts{std::to_string(element_bits(weight.format.element))}; });
    compare("strategy", scheme.strategies,
            [&](const Weight& weight) { return strategies_of(weight, scheme.group_sizes, blocks_); });
    // Zero points that are not declared are not read; without any, a declared one is zero.
    compare("symmetric", scheme.symmetric,
            [](const Weight& weight) { return weight.format.zero == ZeroPoint::kCode ? Texts{"false"} : Texts{}; });
    Texts sizes;
    for (const int64_t size : scheme.group_sizes) sizes.insert(std::to_string(size));
    compare("group_size", sizes, [](const Weight& weight) {
      const Format& format = weight.format;
      return format.block_rows == 1 && format.block_cols > 0 ? Texts{std::to_string(format.block_cols)} : Texts{};
    });
    if (scheme.strategies == Texts{"block"}) blocks("block_structure");
    targets(scheme);
  }

  void blocks(const char* key) {
    if (blocks_.empty()) return;
    Texts declared;
    for (const auto& [rows, cols] : blocks_) declared.insert(fmt::format("{} x {}", rows, cols));
    compare(key, declared, [this](const Weight& weight) {
      const Format& format = weight.format;
      if (!is_eight_bit_float(format) || has_blocks(weight, blocks_)) return Texts{};
      return Texts{fmt::format("[{}, {}] scales for [{}, {}]", format.scale_rows(weight.rows()),
                               format.scale_cols(weight.cols()), weight.rows(), weight.cols())};
    });
  }

  // Modules that no target means are left as they are; of those that some mean, and others not, names say too little.
  void targets(const DeclaredScheme& scheme) {
    constexpr uint64_t kMostMatches = 20'000'000;
    if (scheme.targets.size() * weights_.size() > kMostMatches) return;
    const Targets targets(scheme.targets);
    std::optional<size_t> first;
    bool any = false;
    for_each([&](size_t w) {
      if (!first) first = w;
      any = targets.may_mean(without_suffix(weights_[w].name, ".weight"));
      return any;
    });
    if (any || !first) return;
    report(*first, "targets", scheme.no_targets ? "no module" : fmt::format("{}", fmt::join(scheme.targets, ", ")),
           std::string(without_suffix(weights_[*first].name, ".weight")));
  }

  static bool is_eight_bit_float(const Format& format) {
    return format.element == Element::kE4M3 || format.element == Element::kE5M2;
  }

  // Some loaders take 128 x 128 where nothing is said, others one scale for the matrix.
  void unsaid_blocks() {
    for_each([&](size_t w) {
      const Format& format = weights_[w].format;
      if (!is_eight_bit_float(format) ||
          format.scale_rows(weights_[w].rows()) * format.scale_cols(weights_[w].cols()) == 1)
        return false;
      findings_->push_back(weight_finding(
          context_, w, Severity::kWarning, kName,
          "the configuration does not declare `weight_block_size`, and the weight has a scale for each block: some "
          "loaders take one size for granted, others one scale for the matrix. Declare it, or copy config.json again",
          {{"key", "weight_block_size"},
           {"declared", "missing"},
           {"stored", format.name},
           {"scales",
            fmt::format("[{}, {}]", format.scale_rows(weights_[w].rows()), format.scale_cols(weights_[w].cols()))},
           {"config", context_.model->table.hints().source}}));
      return true;
    });
  }

  void eight_bit_floats(const Json& settings) {
    Texts kinds;
    const std::string declared = lower_text(settings, "fmt");
    for (const char* kind : {"e4m3", "e5m2", "e2m1", "int"}) {
      if (declared.find(kind) != std::string::npos) kinds.insert(kind);
    }
    compare("fmt", kinds, [](const Weight& weight) {
      if (!is_eight_bit_float(weight.format)) return Texts{};
      return Texts{weight.format.element == Element::kE4M3 ? "e4m3" : "e5m2"};
    });
    if (!blocks_.empty()) blocks("weight_block_size");
    if (blocks_.empty() && leaves_blocks_open(context_.model->table.hints())) unsaid_blocks();
    if (lower_text(settings, "scale_fmt") == "ue8m0") powers_of_two();
  }

  // Loaders keep the exponents alone.
  void powers_of_two() {
    for_each([&](size_t w) {
      const ScaleStats& scales = context_.scan->weights[w].scales;
      if (!is_eight_bit_float(weights_[w].format) || scales.powers_of_two == scales.good) return false;
      report(w, "scale_fmt", "ue8m0",
             fmt::format("{} of {} scales that are no powers of two", scales.good - scales.powers_of_two, scales.good));
      return true;
    });
  }

  const VerifyContext& context_;
  const std::vector<Weight>& weights_;
  const std::string& method_;
  BlockSizes blocks_;  // that are declared
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
  SchemeCheck check(context, findings);
  check.run();
  check.algorithms();
  check_layers(context, findings);
}

}  // namespace

extern const Rule kConfigScheme = {kName, "what the configuration declares of the weights against what is stored",
                                   check};

}  // namespace nibble
