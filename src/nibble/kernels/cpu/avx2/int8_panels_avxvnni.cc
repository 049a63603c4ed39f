// AVX2 with VNNI (client processors since 2021, which have no AVX-512).
#include <string>

#include "nibble/base/cpu_features.h"
#include "nibble/kernels/cpu/avx2/int8_panels_avx2.h"
#include "nibble/kernels/kernel.h"

namespace nibble {
namespace {

struct VnniDot {
  static __m256i add(__m256i sum, __m256i weights, __m256i x) { return _mm256_dpbusd_avx_epi32(sum, weights, x); }
  static __m256i add_signed(__m256i sum, __m256i weights, __m256i x) {
    return add(sum, _mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights));
  }
};

std::string processor_lacks() {
  if (best_isa() < Isa::kAvx2) return "AVX2, FMA or F16C";
  return has_avx_vnni() ? "" : "AVX-VNNI";
}

}  // namespace

extern const Kernel kAvxVnniInt8;
const Kernel kAvxVnniInt8 = {"avx-vnni",
                             ActivationKind::kInt8,
                             64,
                             processor_lacks,
                             panel_from_table<avx2::Panels<VnniDot>>,
                             obstacle_from_table<avx2::Panels<VnniDot>>};

}  // namespace nibble
