#include "nibble/kernels/cpu/vector/vector_loops.h"

namespace nibble {

const VectorLoops& vector_loops() {
  switch (best_isa()) {
    case Isa::kAvx512: return avx512_vector_loops();
    case Isa::kAvx2: return avx2_vector_loops();
    case Isa::kScalar: break;
  }
  return scalar_vector_loops();
}

}  // namespace nibble
