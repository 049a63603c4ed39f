// Scales of activations that the configuration promises and no file holds. Loaders that go by the configuration leave
// what they allocated for them: zeros, ones or what was in memory before.
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

#include "nibble/checkpoint/conventions/declared_inputs.h"
#include "nibble/verify/declared_scheme.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "input-scale";

void check(const VerifyContext& context, Findings* findings) {
  if (context.checkpoint->container() == Container::kGguf) return;
  const QuantHints& hints = context.model->table.hints();
  const auto promised = declared_static_inputs(hints, quantization_settings(*context.checkpoint));
  if (!promised) return;
  const auto& weights = context.model->table.weights();
  uint64_t missing = 0, all = 0;
  std::optional<size_t> first;
  for (size_t w = 0; w < weights.size(); ++w) {
    if (!is_quantized_by(weights[w], hints.method)) continue;
    ++all;
    if (weights[w].part(PartKind::kInputScale) != nullptr) continue;
    ++missing;
    if (!first) first = w;
  }
  if (!first) return;
  findings->push_back(weight_finding(
      context, *first, Severity::kError, kName,
      fmt::format(
          "`{}` {} promises a stored scale of the input, and {} of {} quantized weights have none (this is the "
          "first): loaders compute with whatever stands there. Declare weights alone as quantized, or store the "
          "scales of a calibration",
          promised->key, printable(promised->value), missing, all),
      {{"key", promised->key},
       {"declared", printable(promised->value)},
       {"missing", std::to_string(missing)},
       {"of", std::to_string(all)},
       {"config", hints.source}}));
}

}  // namespace

extern const Rule kInputScale = {kName, "scales of activations that are declared and not stored", check};

}  // namespace nibble
