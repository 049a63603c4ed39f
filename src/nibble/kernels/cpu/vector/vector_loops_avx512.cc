#include "nibble/kernels/cpu/vector/vector_loops_impl.h"

namespace nibble {

const VectorLoops& avx512_vector_loops() {
  static const VectorLoops loops = table(Isa::kAvx512);
  return loops;
}

}  // namespace nibble
