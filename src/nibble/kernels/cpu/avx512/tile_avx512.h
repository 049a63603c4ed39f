// What stands in a tile before its codes, for kernels of 16 rows a vector.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "nibble/kernels/cpu/tile_parts.h"
#include "nibble/kernels/panel.h"
#include "nibble/numerics/format.h"
#include "nibble/numerics/simd/always_inline.h"

namespace nibble {

// Asks for what follows a tile, some of it for the second cache and the nearer part for the first: a core waits for
// more lines than the first cache can ask for. Distances: the best of eight pairs on a Xeon of 2023, by a tenth against
// one distance of 3 KiB.
NIBBLE_VEC void prefetch_behind(const std::byte* tile, uint64_t bytes) {
  constexpr uint64_t kNear = 1024, kFar = 3072;
  for (uint64_t line = 0; line < bytes; line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(tile + kNear + line), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(tile + kFar + line), _MM_HINT_T1);
  }
}

// A token's sums of a row group, those of its rows that the matrix has.
NIBBLE_VEC void store_rows(const PanelTask& task, uint64_t group, uint64_t token, __m512 sums) {
  const uint64_t row = group * kRowGroup, rows = std::min(kRowGroup, task.weights->layout.n - row);
  _mm512_mask_storeu_ps(task.out + token * task.out_stride + row, static_cast<__mmask16>((1U << rows) - 1), sums);
}

// The 16 scales as float32, without the matrix's multiplier.
template <ScaleType kType>
NIBBLE_VEC __m512 load_scales(const std::byte* at) {
  const auto* bytes = reinterpret_cast<const __m128i*>(at);
  if constexpr (kType == ScaleType::kE8M0) {
    const __m512i codes = _mm512_cvtepu8_epi32(_mm_loadu_si128(bytes));
    // Code 0 is 2^-127, a subnormal; all others have larger bits.
    return _mm512_castsi512_ps(_mm512_max_epu32(_mm512_slli_epi32(codes, 23), _mm512_set1_epi32(0x00400000)));
  }
  if constexpr (kType == ScaleType::kE4M3) {
    // As binary16 the same bits are 2^-8 of the value, subnormals included; the caller's multiplier makes up for it.
    // The shift leaves the sign in two places, of which the mask keeps one.
    const __m256i wide = _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128(bytes)), 7);
    return _mm512_cvtph_ps(_mm256_and_si256(wide, _mm256_set1_epi16(static_cast<short>(0xbf80))));
  }
  if constexpr (kType == ScaleType::kBF16) {
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  }
  if constexpr (kType == ScaleType::kF16) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
  if constexpr (kType == ScaleType::kF32) return _mm512_loadu_ps(at);
  return _mm512_set1_ps(1);
}

// What load_scales() has to be multiplied by: the matrix's multiplier, and the power of two that E4M3 was short of.
template <ScaleType kType>
NIBBLE_VEC float scale_multiplier(float multiplier) {
  return kType == ScaleType::kE4M3 ? multiplier * 256.0F : multiplier;
}

// Whether the product is needed: one level of scales has multiplier 1.
template <ScaleType kType>
inline constexpr bool kHasMultiplier = kType == ScaleType::kE4M3;

// Scales, zero points or minima of a tile of integers, and where its codes are. `multiplier`: of scale_multiplier().
template <ScaleType kScale, ZeroPoint kZero>
struct IntegerTile {
  __m512 scale;
  __m512i zeros;
  __m512 mins;
  const std::byte* codes;

  __attribute__((always_inline)) IntegerTile(const std::byte* at, __m512 multiplier) {
    scale = load_scales<kScale>(at);
    if constexpr (kHasMultiplier<kScale>) scale = _mm512_mul_ps(scale, multiplier);
    const std::byte* of_zeros = at + tile_scale_bytes<kScale>();
    codes = of_zeros + tile_zero_bytes<kZero>();
    if constexpr (kZero == ZeroPoint::kCode) {
      zeros = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(of_zeros)));
    }
    if constexpr (kZero == ZeroPoint::kMin) mins = _mm512_loadu_ps(of_zeros);
  }
};

}  // namespace nibble
