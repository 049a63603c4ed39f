#include "nibble/kernels/kernel.h"

namespace nibble {

std::string_view activation_kind_name(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kF32: return "f32";
    case ActivationKind::kInt8: return "int8";
    case ActivationKind::kE2M1: return "e2m1";
    case ActivationKind::kBF16: return "bf16";
  }
  return "f32";
}

}  // namespace nibble
