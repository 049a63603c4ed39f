#include "nibble/kernels/kernel.h"

namespace nibble {

std::string_view activation_kind_name(ActivationKind kind) { return kind == ActivationKind::kF32 ? "f32" : "int8"; }

}  // namespace nibble
