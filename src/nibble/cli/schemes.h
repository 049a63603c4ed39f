// Schemes as the command line spells them.
#pragma once

#include <string_view>

#include "nibble/engine/kv/paged_cache.h"
#include "nibble/kernels/kernel.h"
#include "nibble/numerics/cache_types.h"

namespace nibble {

// Activations that low-bit weights meet under a scheme.
inline ActivationKind activations_of_scheme(std::string_view scheme) {
  return scheme == "w4a8" ? ActivationKind::kInt8 : scheme == "w4a4" ? ActivationKind::kE2M1 : ActivationKind::kF32;
}

// What keys and values are kept as, under a name of numerics/cache_types.h; any other name is float32.
inline CacheElement cache_element_of(std::string_view name) {
  for (const CacheType& type : cache_types()) {
    if (type.name == name) return type.element_bytes == 1 ? CacheElement::kE4M3 : CacheElement::kBF16;
  }
  return CacheElement::kF32;
}

}  // namespace nibble
