#include "nibble/numerics/simd/kernels.h"
namespace nibble::simd {
const Kernels& avx512_kernels() { return scalar_kernels(); }
}  // namespace nibble::simd
