// The loops of code_loops_avx2.h, dense_loops.h, encode_loops.h and decode_loops.h for AVX2.
#include "nibble/numerics/simd/vec_avx2.h"
//
#include "nibble/numerics/simd/code_loops_avx2.h"
#include "nibble/numerics/simd/decode_loops.h"
#include "nibble/numerics/simd/dense_loops.h"
#include "nibble/numerics/simd/encode_loops.h"

namespace nibble::simd {

const Kernels& avx2_kernels() {
  static constexpr Kernels kTable = {Isa::kAvx2,
                                     load<VecAvx2>,
                                     store<VecAvx2>,
                                     abs_max<VecAvx2>,
                                     block_abs_max<VecAvx2>,
                                     dense_block_abs_max<VecAvx2>,
                                     block_min_max<VecAvx2>,
                                     encode<VecAvx2>,
                                     block_noise<VecAvx2>,
                                     decode<VecAvx2>,
                                     nibble_maxima,
                                     pair_maxima};
  return kTable;
}

}  // namespace nibble::simd
