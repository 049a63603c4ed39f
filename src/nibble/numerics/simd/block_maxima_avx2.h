// Largest magnitudes of blocks of BF16, by 16-bit patterns of 256 bits. Included by *_avx2.cc and *_avx512.cc alone.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "nibble/numerics/simd/always_inline.h"

namespace nibble::simd {

// Sixteen patterns; block_cols is a multiple of 16.
NIBBLE_VEC __m256i largest_of_block(const std::byte* in, uint64_t block_cols) {
  const auto at = [&](uint64_t k) {
    const __m256i patterns = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + 2 * k));
    return _mm256_and_si256(patterns, _mm256_set1_epi16(0x7fff));
  };
  __m256i most = at(0);
  for (uint64_t k = 16; k < block_cols; k += 16) most = _mm256_max_epu16(most, at(k));
  return most;
}

// The largest of each block's sixteen; blocks leave in order.
NIBBLE_VEC __m128i largest_of_8_blocks(const __m256i* a) {
  const auto two = [](__m256i p, __m256i q) {
    return _mm256_max_epu16(_mm256_unpacklo_epi16(p, q), _mm256_unpackhi_epi16(p, q));
  };
  const auto four = [](__m256i p, __m256i q) {
    return _mm256_max_epu16(_mm256_unpacklo_epi32(p, q), _mm256_unpackhi_epi32(p, q));
  };
  const __m256i low = four(two(a[0], a[1]), two(a[2], a[3])), high = four(two(a[4], a[5]), two(a[6], a[7]));
  const __m256i all = _mm256_max_epu16(_mm256_unpacklo_epi64(low, high), _mm256_unpackhi_epi64(low, high));
  return _mm_max_epu16(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}

template <uint64_t kBlockCols>
static inline uint64_t bf16_block_maxima(const std::byte* in, uint64_t cols, float* amax) {
  uint64_t b = 0;
  for (; (b + 8) * kBlockCols <= cols; b += 8) {
    __m256i most[8];
    for (uint64_t i = 0; i < 8; ++i) most[i] = largest_of_block(in + 2 * (b + i) * kBlockCols, kBlockCols);
    const __m256i found = _mm256_slli_epi32(_mm256_cvtepu16_epi32(largest_of_8_blocks(most)), 16);
    const __m256i before = _mm256_castps_si256(_mm256_loadu_ps(amax + b));
    _mm256_storeu_ps(amax + b, _mm256_castsi256_ps(_mm256_max_epi32(found, before)));
  }
  return b;
}

}  // namespace nibble::simd
