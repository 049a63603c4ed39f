#include "nibble/kernels/cpu/vector/vector_loops_impl.h"

namespace nibble {

const VectorLoops& avx2_vector_loops() {
  static const VectorLoops loops = table(Isa::kAvx2);
  return loops;
}

}  // namespace nibble
