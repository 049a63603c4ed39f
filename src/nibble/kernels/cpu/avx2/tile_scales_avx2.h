// Eight of the 16 scales of a tile as float32: those of rows 8 · half to 8 · half + 7.
#pragma once

#include <immintrin.h>

#include <cstddef>

#include "nibble/kernels/cpu/tile_parts.h"
#include "nibble/numerics/format.h"

namespace nibble {

// binary16 with the bits of an E4M3: 2^-8 of its value, subnormals included. Eight bytes in, eight halves out.
inline __m128i e4m3_halves(const std::byte* at) {
  const __m128i wide = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
  const __m128i magnitude = _mm_and_si128(_mm_slli_epi16(wide, 7), _mm_set1_epi16(0x3f80));
  const __m128i sign = _mm_and_si128(_mm_slli_epi16(wide, 8), _mm_set1_epi16(static_cast<short>(0x8000)));
  return _mm_or_si128(magnitude, sign);
}

// `multiplier` is the matrix's; only scales with two levels have one.
template <ScaleType kType>
__m256 load_half_scales(const std::byte* scales, size_t half, float multiplier) {
  const std::byte* at = scales + half * tile_scale_bytes<kType>() / 2;
  const auto* words = reinterpret_cast<const __m128i*>(at);
  if constexpr (kType == ScaleType::kE8M0) {
    const __m256i codes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(words));
    // Code 0 is 2^-127, a subnormal.
    const __m256i lowest = _mm256_cmpeq_epi32(codes, _mm256_setzero_si256());
    const __m256i subnormal = _mm256_and_si256(lowest, _mm256_set1_epi32(0x00400000));
    return _mm256_castsi256_ps(_mm256_or_si256(_mm256_slli_epi32(codes, 23), subnormal));
  }
  if constexpr (kType == ScaleType::kE4M3) {
    return _mm256_mul_ps(_mm256_cvtph_ps(e4m3_halves(at)), _mm256_set1_ps(multiplier * 256.0F));
  }
  if constexpr (kType == ScaleType::kBF16) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(words)), 16));
  }
  if constexpr (kType == ScaleType::kF16) return _mm256_cvtph_ps(_mm_loadu_si128(words));
  if constexpr (kType == ScaleType::kF32) return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
  return _mm256_set1_ps(1);
}

// Writes the rows of a half that the matrix has.
inline void store_half(float* out, uint64_t rows, size_t half, __m256 values) {
  const uint64_t first = half * 8;
  if (first >= rows) return;
  alignas(32) float all[8];
  _mm256_store_ps(all, values);
  for (uint64_t i = 0; i < 8 && first + i < rows; ++i) out[first + i] = all[i];
}

}  // namespace nibble
