#include "nibble/numerics/simd/kernels.h"

namespace nibble::simd {

const Kernels& kernels() {
  switch (best_isa()) {
    case Isa::kScalar: return scalar_kernels();
    case Isa::kAvx2: return avx2_kernels();
    case Isa::kAvx512: return avx512_kernels();
  }
  return scalar_kernels();
}

}  // namespace nibble::simd
