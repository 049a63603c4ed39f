// Sixteen float32 lanes in AVX-512 (F, BW, VL, DQ). Included by *_avx512.cc alone; the interface is that of vec_avx2.h.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "nibble/numerics/simd/always_inline.h"
#include "nibble/numerics/simd/block_maxima_avx2.h"

namespace nibble::simd {

struct VecAvx512 {
  static constexpr uint64_t kLanes = 16;
  using F = __m512;
  using I = __m512i;

  NIBBLE_VEC F load(const float* p) { return _mm512_loadu_ps(p); }
  NIBBLE_VEC void store(float* p, F a) { _mm512_storeu_ps(p, a); }
  NIBBLE_VEC F set(float a) { return _mm512_set1_ps(a); }
  NIBBLE_VEC F broadcast(const float* p) { return _mm512_set1_ps(*p); }
  NIBBLE_VEC I set_int(int32_t a) { return _mm512_set1_epi32(a); }
  NIBBLE_VEC F add(F a, F b) { return _mm512_add_ps(a, b); }
  NIBBLE_VEC F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  NIBBLE_VEC F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  NIBBLE_VEC F div(F a, F b) { return _mm512_div_ps(a, b); }
  NIBBLE_VEC F mul_add(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }       // a * b + c, rounded once
  NIBBLE_VEC F sub_product(F c, F a, F b) { return _mm512_fnmadd_ps(a, b, c); }  // c - a * b, rounded once
  NIBBLE_VEC F min(F a, F b) { return _mm512_min_ps(a, b); }
  NIBBLE_VEC F max(F a, F b) { return _mm512_max_ps(a, b); }
  NIBBLE_VEC F limit_magnitude(F a, F bound) {
    constexpr int kSmallerMagnitude = 0b0010;  // with the sign of the first
    return _mm512_range_ps(a, bound, kSmallerMagnitude);
  }
  NIBBLE_VEC I bits(F a) { return _mm512_castps_si512(a); }
  NIBBLE_VEC F from_bits(I a) { return _mm512_castsi512_ps(a); }
  NIBBLE_VEC I and_int(I a, I b) { return _mm512_and_si512(a, b); }
  NIBBLE_VEC I or_int(I a, I b) { return _mm512_or_si512(a, b); }
  NIBBLE_VEC I add_int(I a, I b) { return _mm512_add_epi32(a, b); }
  NIBBLE_VEC I sub_int(I a, I b) { return _mm512_sub_epi32(a, b); }
  NIBBLE_VEC I max_int(I a, I b) { return _mm512_max_epi32(a, b); }
  template <int kCount>
  NIBBLE_VEC I shift_right(I a) {
    return _mm512_srli_epi32(a, kCount);
  }
  template <int kCount>
  NIBBLE_VEC I shift_left(I a) {
    return _mm512_slli_epi32(a, kCount);
  }
  NIBBLE_VEC I to_int(F a) { return _mm512_cvtps_epi32(a); }
  NIBBLE_VEC F to_float(I a) { return _mm512_cvtepi32_ps(a); }
  NIBBLE_VEC I with_sign(I a, F sign) {
    return _mm512_mask_sub_epi32(a, _mm512_movepi32_mask(bits(sign)), _mm512_setzero_si512(), a);
  }
  NIBBLE_VEC I where_negative_and_zero(F a, F b, I then, I other) {
    const __mmask16 negative = _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_LT_OQ);
    return _mm512_mask_mov_epi32(other, _mm512_mask_cmp_ps_mask(negative, b, _mm512_setzero_ps(), _CMP_EQ_OQ), then);
  }
  NIBBLE_VEC I where_signed_and_zero(F a, F b, I then, I other) {
    const __mmask16 negative = _mm512_movepi32_mask(bits(a));
    return _mm512_mask_mov_epi32(other, _mm512_mask_cmp_ps_mask(negative, b, _mm512_setzero_ps(), _CMP_EQ_OQ), then);
  }
  NIBBLE_VEC F where_less(I a, I b, F then, F other) {
    return _mm512_mask_mov_ps(other, _mm512_cmplt_epi32_mask(a, b), then);
  }
  NIBBLE_VEC I where_equal(I a, I b, I then, I other) {
    return _mm512_mask_mov_epi32(other, _mm512_cmpeq_epi32_mask(a, b), then);
  }
  NIBBLE_VEC F look_up(const float* table, I index) {
    const F entries = _mm512_castps256_ps512(_mm256_loadu_ps(table));
    return _mm512_permutexvar_ps(_mm512_and_si512(index, set_int(7)), entries);
  }

  struct Lanes {
    __m512d all;
  };
  NIBBLE_VEC Lanes load_lanes(const double* p) { return {_mm512_loadu_pd(p)}; }
  NIBBLE_VEC Lanes zero_lanes() { return {_mm512_setzero_pd()}; }
  NIBBLE_VEC void store_lanes(double* p, const Lanes& lanes) { _mm512_storeu_pd(p, lanes.all); }
  // Two vectors of squares, 32 columns: one number for each of the 8 lanes (RowSums).
  NIBBLE_VEC void add_step(const F* squares, Lanes* lanes) {
    const __m512 sum = _mm512_add_ps(squares[0], squares[1]);
    const __m256 all = _mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps(sum, 1));
    lanes->all = _mm512_add_pd(lanes->all, _mm512_cvtps_pd(all));
  }
  NIBBLE_VEC double total(const Lanes& lanes) {
    const __m256d halves = _mm256_add_pd(_mm512_castpd512_pd256(lanes.all), _mm512_extractf64x4_pd(lanes.all, 1));
    const __m128d quarters = _mm_add_pd(_mm256_castpd256_pd128(halves), _mm256_extractf128_pd(halves, 1));
    return _mm_cvtsd_f64(_mm_add_sd(quarters, _mm_unpackhi_pd(quarters, quarters)));
  }

  // 32 integers in two vectors; the bytes are in column order.
  struct Bytes {
    __m256i v;
  };
  NIBBLE_VEC Bytes pack(const I* a) {
    return {_mm256_set_m128i(_mm512_cvtsepi32_epi8(a[1]), _mm512_cvtsepi32_epi8(a[0]))};
  }
  NIBBLE_VEC Bytes add_bytes(Bytes a, int8_t b) { return {_mm256_add_epi8(a.v, _mm256_set1_epi8(b))}; }
  NIBBLE_VEC Bytes look_up_with_sign(Bytes a, const uint8_t* table) {
    const __m256i entries = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
    const __m256i sizes = _mm256_shuffle_epi8(entries, _mm256_abs_epi8(a.v));
    const __m256i signs = _mm256_and_si256(_mm256_srli_epi16(a.v, 4), _mm256_set1_epi8(8));
    return {_mm256_or_si256(sizes, signs)};
  }
  // Codes of 32 E4M3 numbers, from the float32 patterns of these divided by 256.
  NIBBLE_VEC void store_e4m3_of_halves(std::byte* p, const I* a) {
    const __m256i low = _mm512_cvtps_ph(from_bits(a[0]), _MM_FROUND_TO_NEAREST_INT);
    const __m256i high = _mm512_cvtps_ph(from_bits(a[1]), _MM_FROUND_TO_NEAREST_INT);
    const __m512i halves = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    const __m512i signs = _mm512_srli_epi16(halves, 8), sizes = _mm512_srli_epi16(halves, 7);
    constexpr int kFirstWhereThird = 0xe4;  // of three operands: the third picks between the first and the second
    const __m512i words = _mm512_ternarylogic_epi32(signs, sizes, _mm512_set1_epi16(0x80), kFirstWhereThird);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi16_epi8(words));
  }
  NIBBLE_VEC void store_bytes(std::byte* p, Bytes a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v); }
  NIBBLE_VEC void store_nibbles(std::byte* p, Bytes a) {
    const __m256i pairs = _mm256_maddubs_epi16(a.v, _mm256_set1_epi16(0x1001));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtepi16_epi8(pairs));
  }

  NIBBLE_VEC I load_unsigned_bytes(const std::byte* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  NIBBLE_VEC I load_signed_bytes(const std::byte* p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  NIBBLE_VEC I load_nibbles(const std::byte* p) {
    int32_t words[2];
    __builtin_memcpy(words, p, 8);
    const __m512i both = _mm512_inserti64x4(_mm512_set1_epi32(words[0]), _mm256_set1_epi32(words[1]), 1);
    const __m256i shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    return _mm512_srlv_epi32(both, _mm512_broadcast_i64x4(shifts));
  }

  NIBBLE_VEC F load_bf16(const std::byte* p) {
    const __m256i raw = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return from_bits(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16));
  }
  NIBBLE_VEC F load_f16(const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  NIBBLE_VEC void store_f16(std::byte* p, F a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
  }
  NIBBLE_VEC void store_low_halves(std::byte* p, I a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a));
  }
  NIBBLE_VEC F load_f64(const std::byte* p) {
    const __m512 low = _mm512_castps256_ps512(_mm512_cvtpd_ps(_mm512_loadu_pd(p)));
    return _mm512_insertf32x8(low, _mm512_cvtpd_ps(_mm512_loadu_pd(p + 64)), 1);
  }
  // Whole eights of blocks, as Kernels::dense_block_abs_max; returns how many blocks that were.
  template <uint64_t kBlockCols>
  NIBBLE_VEC uint64_t largest_of_bf16_blocks(const std::byte* in, uint64_t cols, float* amax) {
    return bf16_block_maxima<kBlockCols>(in, cols, amax);
  }
  NIBBLE_VEC I load_raw(const std::byte* p) { return _mm512_loadu_si512(p); }
  NIBBLE_VEC I max_u16(I a, I b) { return _mm512_max_epu16(a, b); }

  NIBBLE_VEC uint32_t largest(I a) { return static_cast<uint32_t>(_mm512_reduce_max_epi32(a)); }
  NIBBLE_VEC float smallest_float(F a) { return _mm512_reduce_min_ps(a); }
  NIBBLE_VEC float largest_float(F a) { return _mm512_reduce_max_ps(a); }
  NIBBLE_VEC void largest_of_8(const I* a, float* out) {
    const auto half = [](I p) { return _mm256_max_epi32(_mm512_castsi512_si256(p), _mm512_extracti64x4_epi64(p, 1)); };
    const auto pair = [](__m256i p, __m256i q) {
      return _mm256_max_epi32(_mm256_unpacklo_epi32(p, q), _mm256_unpackhi_epi32(p, q));
    };
    const auto four = [](__m256i p, __m256i q) {
      return _mm256_max_epi32(_mm256_unpacklo_epi64(p, q), _mm256_unpackhi_epi64(p, q));
    };
    const __m256i low = four(pair(half(a[0]), half(a[1])), pair(half(a[2]), half(a[3])));
    const __m256i high = four(pair(half(a[4]), half(a[5])), pair(half(a[6]), half(a[7])));
    const __m256i all =
        _mm256_max_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
    const __m256i before = _mm256_castps_si256(_mm256_loadu_ps(out));
    _mm256_storeu_ps(out, _mm256_castsi256_ps(_mm256_max_epi32(all, before)));
  }
  // out[i] = the extreme of out[i] and the lanes of a[i], for 8 vectors of floats.
  template <typename Combine>
  NIBBLE_VEC void combine_8(const F* a, float* out, Combine combine) {
    const auto half = [&](F p) { return combine(_mm512_castps512_ps256(p), _mm512_extractf32x8_ps(p, 1)); };
    const auto pair = [&](F p, F q) {
      const __m256 x = half(p), y = half(q);
      return combine(_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y));
    };
    const auto four = [&](__m256 p, __m256 q) {
      return combine(_mm256_shuffle_ps(p, q, 0x44), _mm256_shuffle_ps(p, q, 0xee));
    };
    const __m256 low = four(pair(a[0], a[1]), pair(a[2], a[3])), high = four(pair(a[4], a[5]), pair(a[6], a[7]));
    const __m256 all = combine(_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31));
    _mm256_storeu_ps(out, combine(all, _mm256_loadu_ps(out)));
  }
  NIBBLE_VEC void smallest_of_8(const F* a, float* out) {
    combine_8(a, out, [](__m256 p, __m256 q) { return _mm256_min_ps(p, q); });
  }
  NIBBLE_VEC void largest_floats_of_8(const F* a, float* out) {
    combine_8(a, out, [](__m256 p, __m256 q) { return _mm256_max_ps(p, q); });
  }
};

}  // namespace nibble::simd
