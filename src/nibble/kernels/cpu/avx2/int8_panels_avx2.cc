// AVX2 without VNNI: products of bytes are summed in pairs in 16 bits, then in fours in 32. 4-bit weights are at most
// 24, so a pair is at most 2 · 24 · 127; signed bytes go as magnitude and sign, at most 2 · 128 · 127: neither
// saturates.
#include <string>

#include "nibble/base/cpu_features.h"
#include "nibble/kernels/cpu/avx2/int8_panels_avx2.h"
#include "nibble/kernels/kernel.h"

namespace nibble {
namespace {

struct PairwiseDot {
  static __m256i add(__m256i sum, __m256i weights, __m256i x) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(weights, x), _mm256_set1_epi16(1)));
  }
  static __m256i add_signed(__m256i sum, __m256i weights, __m256i x) {
    return add(sum, _mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights));
  }
};

std::string processor_lacks() { return best_isa() >= Isa::kAvx2 ? "" : "AVX2, FMA or F16C"; }

}  // namespace

extern const Kernel kAvx2Int8;
const Kernel kAvx2Int8 = {"avx2",
                          ActivationKind::kInt8,
                          21,
                          processor_lacks,
                          panel_from_table<avx2::Panels<PairwiseDot>>,
                          obstacle_from_table<avx2::Panels<PairwiseDot>>};

}  // namespace nibble
