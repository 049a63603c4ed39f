// Schemes: what activations meet weights. The caller chooses one for a whole model and a batch never changes it, since
// it is part of what a certificate certifies.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/engine/weights/linear.h"

namespace nibble {

struct EngineScheme {
  std::string_view name;     // "w4a8"
  std::string_view meaning;  // for help texts
  ActivationKind integer_activations = ActivationKind::kF32;
  ActivationRounding rounding = ActivationRounding::kNone;
};

std::span<const EngineScheme> engine_schemes();
std::vector<std::string> engine_scheme_names();
// "w4a16: float32 activations; w4a8: …"
std::string engine_schemes_help();
// Error naming all schemes.
Arithmetics arithmetics_of_scheme(std::string_view name);

}  // namespace nibble
