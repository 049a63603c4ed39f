#include "nibble/numerics/simd/kernels.h"
namespace nibble::simd {
const Kernels& avx2_kernels() { return scalar_kernels(); }
}  // namespace nibble::simd
