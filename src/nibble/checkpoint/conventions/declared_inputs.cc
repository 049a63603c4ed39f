#include "nibble/checkpoint/conventions/declared_inputs.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace nibble {
namespace {

// FORMATS.md §7.2: those whose tensors include input_scale. Weight-only ones, and those that find the scale of an input
// when they see it, are not among them.
constexpr std::array<std::string_view, 3> kStatic = {"FP8", "NVFP4", "W4A8_NVFP4_FP8"};

// Of one group. "local": blocks get their scale when they are seen, below a stored one of the whole input.
bool is_static(const Json& activations) {
  if (!activations.is_object()) return false;
  const auto dynamic = activations.find("dynamic");
  if (dynamic == activations.end()) return true;  // the reference's default
  return *dynamic == false || *dynamic == "local";
}

std::optional<DeclaredInputs> of_groups(const Json& groups) {
  if (!groups.is_object() || groups.empty()) return std::nullopt;
  for (const auto& [name, group] : groups.items()) {
    if (!group.is_object()) return std::nullopt;
    const auto activations = group.find("input_activations");
    if (activations == group.end() || !is_static(*activations)) return std::nullopt;
  }
  const auto dynamic = groups.begin()->find("input_activations")->find("dynamic");
  const bool said = dynamic != groups.begin()->find("input_activations")->end();
  return DeclaredInputs{"config_groups." + groups.begin().key() + ".input_activations.dynamic",
                        said ? dynamic->dump() : "missing, which means false"};
}

}  // namespace

std::optional<DeclaredInputs> declared_static_inputs(const QuantHints& hints, const Json* settings) {
  if (hints.method == "modelopt") {
    const bool uniform = hints.layers.empty() && hints.expert_algorithm.empty();
    if (!uniform || std::ranges::find(kStatic, hints.algorithm) == kStatic.end()) return std::nullopt;
    return DeclaredInputs{"quant_algo", hints.algorithm};
  }
  if (settings == nullptr) return std::nullopt;
  if (hints.method == "compressed-tensors") {
    const Json* groups = json_member(*settings, "config_groups");
    return groups == nullptr ? std::nullopt : of_groups(*groups);
  }
  const Json* scheme = json_member(*settings, "activation_scheme");
  if (hints.method == "fp8" && scheme != nullptr && *scheme == "static")
    return DeclaredInputs{"activation_scheme", "static"};
  return std::nullopt;
}

}  // namespace nibble
