// The loops of code_loops_avx2.h, dense_loops.h, encode_loops.h and decode_loops.h for AVX-512.
#include "nibble/numerics/simd/vec_avx512.h"
//
#include "nibble/numerics/simd/code_loops_avx2.h"
#include "nibble/numerics/simd/decode_loops.h"
#include "nibble/numerics/simd/dense_loops.h"
#include "nibble/numerics/simd/encode_loops.h"

namespace nibble::simd {

const Kernels& avx512_kernels() {
  static constexpr Kernels kTable = {Isa::kAvx512,
                                     load<VecAvx512>,
                                     store<VecAvx512>,
                                     abs_max<VecAvx512>,
                                     block_abs_max<VecAvx512>,
                                     dense_block_abs_max<VecAvx512>,
                                     block_min_max<VecAvx512>,
                                     encode<VecAvx512>,
                                     block_noise<VecAvx512>,
                                     decode<VecAvx512>,
                                     nibble_maxima,
                                     pair_maxima};
  return kTable;
}

}  // namespace nibble::simd
