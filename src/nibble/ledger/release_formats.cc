#include "nibble/ledger/release_formats.h"

#include <string>

#include "nibble/base/strings.h"
#include "nibble/models/expert_forms.h"
#include "nibble/models/policy.h"

namespace nibble {
namespace {

// Settings speak of experts one by one, or of what holds them all: the first stands for all.
std::string module_of(const ModelSpec& spec, const ParamSpec& param) {
  std::string name = param.name;
  if (param.fusion != Fusion::kNone) {
    const ExpertNames names = per_expert_names(spec, param.layer, 0);
    const bool gated = !names.gate.empty();
    name = param.projection == Projection::kDown           ? names.down
           : param.projection == Projection::kUp || !gated ? names.up
                                                           : names.gate;
  }
  return std::string(without_suffix(name, ".weight"));
}

}  // namespace

FormatOf release_formats(const ModelSpec& spec, const DeclaredFormats& declared) {
  return [&spec, &declared](const ParamSpec& param) -> std::optional<Format> {
    // Convolutions have more dimensions than the matrix of a linear layer.
    const size_t dimensions = param.fusion == Fusion::kNone ? 2 : 3;
    if (!declared.any() || param.shape.size() != dimensions || keep16(param) == Keep16::kAlways) return std::nullopt;
    const std::string module = module_of(spec, param);
    // Kimi-K3 keeps them in 16 bits and does not say so.
    if (param.role == Role::kLatent) return declared.named(module);
    return declared.of(module);
  };
}

}  // namespace nibble
