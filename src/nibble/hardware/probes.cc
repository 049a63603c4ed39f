#include "nibble/hardware/probes.h"

namespace nibble {

Probes probes() {
  switch (best_isa()) {
    case Isa::kScalar: return scalar_probes();
    case Isa::kAvx2: return avx2_probes();
    case Isa::kAvx512: return avx512_probes();
  }
  return scalar_probes();
}

}  // namespace nibble
