// Rows of words to words side by side: (lanes, words) becomes (words, lanes). What weights and activations go through
// on their way into the order in which kernels read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace nibble {

inline constexpr uint64_t kWordBytes = 4;

#if defined(__SSE2__)
// Four words of each of four rows, a vector for each word.
inline void transpose_four(const std::byte* const* rows, uint64_t word, __m128i* out) {
  const auto load = [&](uint64_t r) {
    return _mm_castsi128_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[r] + word * kWordBytes)));
  };
  __m128 vectors[4] = {load(0), load(1), load(2), load(3)};
  _MM_TRANSPOSE4_PS(vectors[0], vectors[1], vectors[2], vectors[3]);
  for (uint64_t i = 0; i < 4; ++i) out[i] = _mm_castps_si128(vectors[i]);
}
#endif

// Four of `lanes` rows; `out` points to the first one's lane.
inline void interleave_four_words(const std::byte* const* rows, uint64_t words, uint64_t lanes, std::byte* out) {
  uint64_t w = 0;
#if defined(__SSE2__)
  for (; w + 4 <= words; w += 4) {
    __m128i vectors[4];
    transpose_four(rows, w, vectors);
    for (uint64_t i = 0; i < 4; ++i) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + (w + i) * lanes * kWordBytes), vectors[i]);
    }
  }
#endif
  for (; w < words; ++w) {
    for (uint64_t r = 0; r < 4; ++r) {
      std::memcpy(out + (w * lanes + r) * kWordBytes, rows[r] + w * kWordBytes, kWordBytes);
    }
  }
}

inline void interleave_words(const std::byte* const* rows, uint64_t words, uint64_t lanes, std::byte* out) {
  uint64_t lane = 0;
  for (; lane + 4 <= lanes; lane += 4) interleave_four_words(rows + lane, words, lanes, out + lane * kWordBytes);
  for (; lane < lanes; ++lane) {
    for (uint64_t w = 0; w < words; ++w) {
      std::memcpy(out + (w * lanes + lane) * kWordBytes, rows[lane] + w * kWordBytes, kWordBytes);
    }
  }
}

// The same of half words: `words` words of 16 rows are 2 · words half words of 16 lanes.
inline void interleave_half_words(const std::byte* const* rows, uint64_t words, std::byte* out) {
  constexpr uint64_t kLanes = 16, kHalf = kWordBytes / 2;
  for (uint64_t lane = 0; lane < kLanes; lane += 4) {
    uint64_t w = 0;
#if defined(__SSE2__)
    for (; w + 4 <= words; w += 4) {
      __m128i vectors[4];
      transpose_four(rows + lane, w, vectors);
      for (uint64_t i = 0; i < 4; ++i) {
        // First halves to the lower eight bytes, second ones to the upper.
        __m128i halves = _mm_shufflelo_epi16(vectors[i], _MM_SHUFFLE(3, 1, 2, 0));
        halves = _mm_shuffle_epi32(_mm_shufflehi_epi16(halves, _MM_SHUFFLE(3, 1, 2, 0)), _MM_SHUFFLE(3, 1, 2, 0));
        std::byte* at = out + (2 * (w + i) * kLanes + lane) * kHalf;
        _mm_storel_epi64(reinterpret_cast<__m128i*>(at), halves);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(at + kLanes * kHalf), _mm_unpackhi_epi64(halves, halves));
      }
    }
#endif
    for (; w < words; ++w) {
      for (uint64_t r = lane; r < lane + 4; ++r) {
        for (uint64_t half = 0; half < 2; ++half) {
          std::memcpy(out + ((2 * w + half) * kLanes + r) * kHalf, rows[r] + w * kWordBytes + half * kHalf, kHalf);
        }
      }
    }
  }
}

}  // namespace nibble
