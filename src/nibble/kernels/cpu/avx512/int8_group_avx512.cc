#include <immintrin.h>

#include "nibble/kernels/cpu/int8_group.h"
#include "nibble/numerics/activations.h"

namespace nibble {
namespace {

// Of each 8 bytes the even ones, then the odd ones.
__m128i interleaved(__m128i codes) {
  return _mm_shuffle_epi8(codes, _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
}

template <uint64_t kGroup, bool kInterleaved>
Int8Group quantize(const float* x, int8_t* codes) {
  constexpr uint64_t kVectors = kGroup / 16;
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  __m512i values[kVectors];
  __m512i most = _mm512_setzero_si512();
  for (uint64_t v = 0; v < kVectors; ++v) {
    values[v] = _mm512_loadu_si512(x + 16 * v);
    // Bit patterns of magnitudes are ordered as the numbers are, NaN above all.
    most = _mm512_max_epi32(most, _mm512_and_si512(values[v], magnitude));
  }
  const uint32_t amax = static_cast<uint32_t>(_mm512_reduce_max_epi32(most));
  Int8Group group{activation_scale(bits_float(amax < kFloatInf ? amax : kFloatInf), 0, kInt8Range, false), 0};
  const bool finite = amax < kFloatInf;
  const __m512 scale = _mm512_set1_ps(group.scale);
  __m512i sum = _mm512_setzero_si512();
  for (uint64_t v = 0; v < kVectors; ++v) {
    __m512i q = _mm512_set1_epi32(static_cast<int>(kInt8Range));
    if (finite) {
      const __m512 quotient = _mm512_div_ps(_mm512_castsi512_ps(values[v]), scale);
      // |x| / s exceeds 127 by rounding alone, and then rounds to 127; only a subnormal scale is off by more.
      q = _mm512_max_epi32(_mm512_min_epi32(_mm512_cvtps_epi32(quotient), q), _mm512_set1_epi32(-127));
    }
    sum = _mm512_add_epi32(sum, q);
    const __m128i bytes = _mm512_cvtepi32_epi8(q);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + 16 * v), kInterleaved ? interleaved(bytes) : bytes);
  }
  group.sum = _mm512_reduce_add_epi32(sum);
  return group;
}

}  // namespace

Int8GroupLoop int8_group_loop_avx512(uint64_t group, bool interleaved) {
  if (group == 16) return interleaved ? quantize<16, true> : quantize<16, false>;
  if (group == 32) return interleaved ? quantize<32, true> : quantize<32, false>;
  return nullptr;
}

}  // namespace nibble
