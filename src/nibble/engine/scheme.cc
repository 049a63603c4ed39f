#include "nibble/engine/scheme.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nibble/base/error.h"

namespace nibble {

std::span<const EngineScheme> engine_schemes() {
  static constexpr EngineScheme kSchemes[] = {
      {"w4a16", "float32 activations", ActivationKind::kF32, ActivationRounding::kNone},
      {"w4a8", "INT8 ones for integer and four-bit weights", ActivationKind::kInt8, ActivationRounding::kNone},
      {"w4a4", "four-bit float blocks on both sides, by the reference (slow)", ActivationKind::kE2M1,
       ActivationRounding::kNone},
      {"w8a8", "INT8 ones for integers, 8-bit floats in groups of 128 for weights of that kind", ActivationKind::kInt8,
       ActivationRounding::kE4M3},
      {"bf16", "activations rounded to BF16", ActivationKind::kF32, ActivationRounding::kBF16},
  };
  return kSchemes;
}

std::vector<std::string> engine_scheme_names() {
  std::vector<std::string> names;
  for (const EngineScheme& scheme : engine_schemes()) names.emplace_back(scheme.name);
  return names;
}

std::string engine_schemes_help() {
  std::string text;
  for (const EngineScheme& scheme : engine_schemes())
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", scheme.name, scheme.meaning);
  return text;
}

Arithmetics arithmetics_of_scheme(std::string_view name) {
  for (const EngineScheme& scheme : engine_schemes()) {
    if (scheme.name != name) continue;
    return {.integer_activations = scheme.integer_activations, .rounding = scheme.rounding, .kernel = ""};
  }
  throw Error("no such scheme")
      .value("scheme", std::string(name))
      .way_out(fmt::format("one of {}", fmt::join(engine_scheme_names(), ", ")));
}

}  // namespace nibble
