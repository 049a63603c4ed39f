#include "nibble/kernels/cpu/vector/vector_loops_impl.h"

namespace nibble {

const VectorLoops& scalar_vector_loops() {
  static const VectorLoops loops = table(Isa::kScalar);
  return loops;
}

}  // namespace nibble
