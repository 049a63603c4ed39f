// The list of unquantized modules in the configuration against what is stored. The stored tensors decide how nibble
// reads; an engine that goes by the list looks for tensors that are not there. (A declared method or a side file that
// contradicts the tensors is reported by the readers under the same name.)
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "nibble/base/strings.h"
#include "nibble/checkpoint/ignore_list.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "config-contradiction";
// A list of thousands of wildcards over hundreds of thousands of modules is somebody's mistake, not a reason to compute
// for minutes.
constexpr uint64_t kMostMatches = 200'000'000;

// Linear layers that configurations count on to be quantized unless they are listed. Latent projections and routers are
// left out: releases keep them in 16 bits without listing them.
bool is_expected(const ParamSpec& param, const Weight& weight) {
  const bool role = param.role == Role::kRoutedExpert || param.role == Role::kSharedExpert ||
                    param.role == Role::kDenseMlp || param.role == Role::kAttention;
  const bool linear = param.projection != Projection::kNone && param.projection != Projection::kHeads &&
                      param.projection != Projection::kOther;
  return role && linear && weight.shape.size() == 2 && !weight.opaque;
}

struct Tally {
  uint64_t count = 0;
  size_t first = 0;
  std::string_view entry;
  void add(size_t weight, std::string_view covering) {
    if (count++ == 0) first = weight, entry = covering;
  }
};

void report(const VerifyContext& context, const Tally& tally, const std::string& message, Severity severity,
            FindingValues values, Findings* findings) {
  if (tally.count == 0) return;
  values.emplace_back("modules", std::to_string(tally.count));
  values.emplace_back("config", context.model->table.hints().source);
  findings->push_back(weight_finding(context, tally.first, severity, kName, message, std::move(values)));
}

// Stored tensors decide how nibble reads; other loaders go by the configuration, and take codes for weights without it.
void check_declared(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  if (context.checkpoint->container() == Container::kGguf || context.checkpoint->config().is_null()) return;
  Tally quantized;
  for (size_t w = 0; w < weights.size(); ++w) {
    if (!weights[w].format.is_dense() && !weights[w].opaque) quantized.add(w, "");
  }
  report(context, quantized,
         "the weights are quantized and no configuration says so: loaders take their parts for unknown tensors. Copy "
         "config.json with its quantization_config again, or quantize again",
         Severity::kWarning, {}, findings);
}

// These quantize every linear layer that is not listed; of the others an empty list says little.
bool needs_list(const QuantHints& hints) { return hints.method == "compressed-tensors" || hints.method == "modelopt"; }

void check(const VerifyContext& context, Findings* findings) {
  const QuantHints& hints = context.model->table.hints();
  const auto& weights = context.model->table.weights();
  if (hints.source.empty()) check_declared(context, findings);
  if (hints.source.empty() || (hints.excluded.empty() && !needs_list(hints))) return;
  // Only there an entry means exactly one module.
  const IgnoreList list(hints.excluded, hints.method != "compressed-tensors");
  for (const std::string& entry : list.invalid())
    findings->push_back(
        {Severity::kWarning,
         std::string(kName),
         hints.source,
         "",
         fmt::format("`{}` in the list of unquantized modules is no regular expression", printable(entry)),
         {}});
  if (list.pattern_count() * weights.size() > kMostMatches) return;
  Tally quantized;
  Tally dense;
  bool any_quantized = false;
  for (size_t w = 0; w < weights.size(); ++w) {
    const std::string_view module = without_suffix(weights[w].name, ".weight");
    if (!weights[w].opaque && !weights[w].format.is_dense()) {
      any_quantized = true;
      if (const auto entry = list.covering(module); !entry.empty()) quantized.add(w, entry);
    } else if (is_expected(context.model->params[w], weights[w]) && !list.may_cover(module)) {
      dense.add(w, {});
    }
  }
  report(
      context, quantized,
      fmt::format("{} modules are listed as unquantized (`{}`, this is the first) but stored quantized: engines that "
                  "go by the list cannot load them. Remove the entry",
                  quantized.count, quantized.entry),
      Severity::kWarning, {{"entry", std::string(quantized.entry)}}, findings);
  if (!any_quantized) return;
  report(
      context, dense,
      fmt::format("{} modules are stored in 16 or 32 bits (this is the first) but not listed as unquantized: engines "
                  "that go by the list look for their scales. List them",
                  dense.count),
      hints.excluded.empty() ? Severity::kWarning : Severity::kNote, {}, findings);
}

}  // namespace

extern const Rule kConfigContradiction = {kName, "the list of unquantized modules against what is stored", check};

}  // namespace nibble
