// Parts that the field leaves in 16 or 32 bits (models/policy.h) and that cost little there. Routers and norms are
// errors: loaders declare them unquantized, and a router's rounding changes which experts run. The others, and latent
// projections around the experts, are warnings: some engines read them, but every token passes through them.
#include <fmt/format.h>

#include <optional>

#include "nibble/models/policy.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "quantized-router";

std::optional<Severity> severity_for(const ParamSpec& param, Container container) {
  switch (param.role) {
    case Role::kRouter:
    case Role::kNorm: return Severity::kError;
    case Role::kLatent: return Severity::kWarning;
    case Role::kUnknown: return std::nullopt;
    case Role::kEmbedding:
      // There the container's own engines expect it.
      if (container == Container::kGguf) return std::nullopt;
      break;
    default: break;
  }
  return keep16(param) == Keep16::kAlways ? std::optional(Severity::kWarning) : std::nullopt;
}

void check(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  for (size_t w = 0; w < weights.size(); ++w) {
    if (weights[w].opaque || weights[w].format.is_dense()) continue;
    const Role role = context.model->params[w].role;
    const auto severity = severity_for(context.model->params[w], context.checkpoint->container());
    if (!severity) continue;
    const std::string shape = shape_text(weights[w].shape);
    findings->push_back(weight_finding(
        context, w, *severity, kName,
        fmt::format(
            "the {} of shape {} is stored in {}: keep it in 16 bits (`--keep {}`), as the field's engines expect",
            role_name(role), shape, weights[w].format.name, role_name(role)),
        {{"role", std::string(role_name(role))}, {"format", weights[w].format.name}, {"shape", shape}}));
  }
}

}  // namespace

extern const Rule kQuantizedRouter = {
    kName, "router or norm (error), latent projection, embedding … (warning) in low bits", check};

}  // namespace nibble
