// Schemes as the command line spells them.
#pragma once

#include <string_view>

#include "nibble/kernels/kernel.h"

namespace nibble {

// Activations that low-bit weights meet under a scheme.
inline ActivationKind activations_of_scheme(std::string_view scheme) {
  return scheme == "w4a8" ? ActivationKind::kInt8 : scheme == "w4a4" ? ActivationKind::kE2M1 : ActivationKind::kF32;
}

}  // namespace nibble
