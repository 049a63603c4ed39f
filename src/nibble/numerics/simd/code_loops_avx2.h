// Loops over stored codes, of 256 bits. Included by *_avx2.cc and *_avx512.cc alone.
#pragma once

#include <immintrin.h>

#include "nibble/numerics/simd/always_inline.h"
#include "nibble/numerics/simd/kernels.h"

namespace nibble::simd {

static inline void nibble_maxima(const uint8_t* codes, uint64_t count, const uint8_t* table, uint8_t* out) {
  const __m256i sizes = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  const __m256i low_bits = _mm256_set1_epi8(15);
  uint64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + i));
    const __m256i low = _mm256_shuffle_epi8(sizes, _mm256_and_si256(bytes, low_bits));
    const __m256i high = _mm256_shuffle_epi8(sizes, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low_bits));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_max_epu8(low, high));
  }
  scalar_kernels().nibble_maxima(codes + i, count - i, table, out + i);
}

// The larger byte of each 16 bits, in their low half.
NIBBLE_VEC __m256i larger_of_pairs(const uint8_t* in) {
  const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
  return _mm256_and_si256(_mm256_max_epu8(pairs, _mm256_srli_epi16(pairs, 8)), _mm256_set1_epi16(0xff));
}

static inline void pair_maxima(const uint8_t* in, uint64_t count, uint8_t* out) {
  uint64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i packed = _mm256_packus_epi16(larger_of_pairs(in + 2 * i), larger_of_pairs(in + 2 * i + 32));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_permute4x64_epi64(packed, 0xd8));
  }
  scalar_kernels().pair_maxima(in + 2 * i, count - i, out + i);
}

}  // namespace nibble::simd
