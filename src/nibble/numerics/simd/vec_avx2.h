// Eight float32 lanes in AVX2 (with FMA and F16C). Included by *_avx2.cc alone: everything here is compiled for that
// instruction set. The template loops (encode_loops.h, decode_loops.h, dense_loops.h) are written against this
// interface and that of vec_avx512.h.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "nibble/numerics/simd/always_inline.h"
#include "nibble/numerics/simd/block_maxima_avx2.h"

namespace nibble::simd {

struct VecAvx2 {
  static constexpr uint64_t kLanes = 8;
  using F = __m256;
  using I = __m256i;

  NIBBLE_VEC F load(const float* p) { return _mm256_loadu_ps(p); }
  NIBBLE_VEC void store(float* p, F a) { _mm256_storeu_ps(p, a); }
  NIBBLE_VEC F set(float a) { return _mm256_set1_ps(a); }
  NIBBLE_VEC F broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  NIBBLE_VEC I set_int(int32_t a) { return _mm256_set1_epi32(a); }
  NIBBLE_VEC F add(F a, F b) { return _mm256_add_ps(a, b); }
  NIBBLE_VEC F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  NIBBLE_VEC F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  NIBBLE_VEC F div(F a, F b) { return _mm256_div_ps(a, b); }
  NIBBLE_VEC F mul_add(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }       // a * b + c, rounded once
  NIBBLE_VEC F sub_product(F c, F a, F b) { return _mm256_fnmadd_ps(a, b, c); }  // c - a * b, rounded once
  NIBBLE_VEC F min(F a, F b) { return _mm256_min_ps(a, b); }
  NIBBLE_VEC F max(F a, F b) { return _mm256_max_ps(a, b); }
  // a, or the positive `bound` with the sign of a where |a| is larger.
  NIBBLE_VEC F limit_magnitude(F a, F bound) { return min(max(a, sub(_mm256_setzero_ps(), bound)), bound); }
  NIBBLE_VEC I bits(F a) { return _mm256_castps_si256(a); }
  NIBBLE_VEC F from_bits(I a) { return _mm256_castsi256_ps(a); }
  NIBBLE_VEC I and_int(I a, I b) { return _mm256_and_si256(a, b); }
  NIBBLE_VEC I or_int(I a, I b) { return _mm256_or_si256(a, b); }
  NIBBLE_VEC I add_int(I a, I b) { return _mm256_add_epi32(a, b); }
  NIBBLE_VEC I sub_int(I a, I b) { return _mm256_sub_epi32(a, b); }
  NIBBLE_VEC I max_int(I a, I b) { return _mm256_max_epi32(a, b); }
  template <int kCount>
  NIBBLE_VEC I shift_right(I a) {
    return _mm256_srli_epi32(a, kCount);
  }
  template <int kCount>
  NIBBLE_VEC I shift_left(I a) {
    return _mm256_slli_epi32(a, kCount);
  }
  NIBBLE_VEC I to_int(F a) { return _mm256_cvtps_epi32(a); }  // nearest even
  NIBBLE_VEC F to_float(I a) { return _mm256_cvtepi32_ps(a); }
  // a, negated where `sign` is a negative number or -0; where it is +0, a or 0.
  NIBBLE_VEC I with_sign(I a, F sign) { return _mm256_sign_epi32(a, bits(sign)); }
  // `then` where a < 0 (as numbers) and b == 0, otherwise `other`.
  NIBBLE_VEC I where_negative_and_zero(F a, F b, I then, I other) {
    const __m256 mask = _mm256_and_ps(_mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_LT_OQ),
                                      _mm256_cmp_ps(b, _mm256_setzero_ps(), _CMP_EQ_OQ));
    return _mm256_blendv_epi8(other, then, _mm256_castps_si256(mask));
  }
  // `then` where a has its sign bit and b == 0, otherwise `other`.
  NIBBLE_VEC I where_signed_and_zero(F a, F b, I then, I other) {
    const __m256 zero = _mm256_cmp_ps(b, _mm256_setzero_ps(), _CMP_EQ_OQ);
    const __m256i mask = _mm256_and_si256(_mm256_srai_epi32(bits(a), 31), _mm256_castps_si256(zero));
    return _mm256_blendv_epi8(other, then, mask);
  }
  // `then` where a < b as signed integers, otherwise `other`.
  NIBBLE_VEC F where_less(I a, I b, F then, F other) {
    return _mm256_blendv_ps(other, then, _mm256_castsi256_ps(_mm256_cmpgt_epi32(b, a)));
  }
  NIBBLE_VEC I where_equal(I a, I b, I then, I other) {
    return _mm256_blendv_epi8(other, then, _mm256_cmpeq_epi32(a, b));
  }
  // The entry of an 8-entry table that the low three bits choose.
  NIBBLE_VEC F look_up(const float* table, I index) { return _mm256_permutevar8x32_ps(load(table), index); }

  // Sums of squares in eight float64 lanes.
  struct Lanes {
    __m256d low, high;
  };
  NIBBLE_VEC Lanes load_lanes(const double* p) { return {_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)}; }
  NIBBLE_VEC Lanes zero_lanes() { return {_mm256_setzero_pd(), _mm256_setzero_pd()}; }
  NIBBLE_VEC void store_lanes(double* p, const Lanes& lanes) {
    _mm256_storeu_pd(p, lanes.low);
    _mm256_storeu_pd(p + 4, lanes.high);
  }
  // Four vectors of squares, 32 columns: one number for each of the 8 lanes (RowSums).
  NIBBLE_VEC void add_step(const F* squares, Lanes* lanes) {
    const __m256 sum = _mm256_add_ps(_mm256_add_ps(squares[0], squares[2]), _mm256_add_ps(squares[1], squares[3]));
    lanes->low = _mm256_add_pd(lanes->low, _mm256_cvtps_pd(_mm256_castps256_ps128(sum)));
    lanes->high = _mm256_add_pd(lanes->high, _mm256_cvtps_pd(_mm256_extractf128_ps(sum, 1)));
  }
  // In the order of sum_of_lanes().
  NIBBLE_VEC double total(const Lanes& lanes) {
    const __m256d halves = _mm256_add_pd(lanes.low, lanes.high);
    const __m128d quarters = _mm_add_pd(_mm256_castpd256_pd128(halves), _mm256_extractf128_pd(halves, 1));
    return _mm_cvtsd_f64(_mm_add_sd(quarters, _mm_unpackhi_pd(quarters, quarters)));
  }

  // 32 integers in four vectors to bytes, saturating to -128..127. The bytes keep the vectors' 128-bit halves apart
  // (columns 0-3, 8-11, 16-19, 24-27, then 4-7, 12-15, …): store_bytes and store_nibbles put them in order.
  struct Bytes {
    __m256i v;
  };
  NIBBLE_VEC Bytes pack(const I* a) {
    return {_mm256_packs_epi16(_mm256_packs_epi32(a[0], a[1]), _mm256_packs_epi32(a[2], a[3]))};
  }
  NIBBLE_VEC Bytes add_bytes(Bytes a, int8_t b) { return {_mm256_add_epi8(a.v, _mm256_set1_epi8(b))}; }
  // |a| looked up in a 16-entry table, with bit 3 set where a < 0.
  NIBBLE_VEC Bytes look_up_with_sign(Bytes a, const uint8_t* table) {
    const __m256i entries = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
    const __m256i sizes = _mm256_shuffle_epi8(entries, _mm256_abs_epi8(a.v));
    const __m256i signs = _mm256_and_si256(_mm256_srli_epi16(a.v, 4), _mm256_set1_epi8(8));
    return {_mm256_or_si256(sizes, signs)};
  }
  // Codes of 32 E4M3 numbers, from the float32 patterns of these divided by 256.
  NIBBLE_VEC void store_e4m3_of_halves(std::byte* p, const I* a) {
    const __m256i packed = _mm256_packus_epi16(e4m3_words(a[0], a[1]), e4m3_words(a[2], a[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
  }
  NIBBLE_VEC __m256i e4m3_words(I a, I b) {
    const __m128i low = _mm256_cvtps_ph(from_bits(a), _MM_FROUND_TO_NEAREST_INT);
    const __m128i high = _mm256_cvtps_ph(from_bits(b), _MM_FROUND_TO_NEAREST_INT);
    const __m256i halves = _mm256_set_m128i(high, low);
    const __m256i signs = _mm256_and_si256(_mm256_srli_epi16(halves, 8), _mm256_set1_epi16(0x80));
    return _mm256_or_si256(signs, _mm256_and_si256(_mm256_srli_epi16(halves, 7), _mm256_set1_epi16(0x7f)));
  }
  NIBBLE_VEC void store_bytes(std::byte* p, Bytes a) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permutevar8x32_epi32(a.v, order));
  }
  // 32 codes of 0..15 as 16 bytes, even columns in the low nibble.
  NIBBLE_VEC void store_nibbles(std::byte* p, Bytes a) {
    const __m256i pairs = _mm256_maddubs_epi16(a.v, _mm256_set1_epi16(0x1001));
    const __m256i packed = _mm256_packus_epi16(pairs, pairs);
    const __m128i ordered = _mm_unpacklo_epi16(_mm256_castsi256_si128(packed), _mm256_extracti128_si256(packed, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), ordered);
  }

  // 8 bytes to 32-bit integers.
  NIBBLE_VEC I load_unsigned_bytes(const std::byte* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  NIBBLE_VEC I load_signed_bytes(const std::byte* p) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  // 4 bytes to the 8 nibbles in column order; bits above the nibble hold garbage but for `look_up` and masking.
  NIBBLE_VEC I load_nibbles(const std::byte* p) {
    int32_t word = 0;
    __builtin_memcpy(&word, p, 4);
    const __m256i shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    return _mm256_srlv_epi32(_mm256_set1_epi32(word), shifts);
  }

  // 16-bit types.
  NIBBLE_VEC F load_bf16(const std::byte* p) {
    const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return from_bits(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
  }
  NIBBLE_VEC F load_f16(const std::byte* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  NIBBLE_VEC void store_f16(std::byte* p, F a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
  }
  // The low halves of 32-bit integers.
  NIBBLE_VEC void store_low_halves(std::byte* p, I a) {
    const __m256i packed = _mm256_packus_epi32(a, a);
    const __m256i ordered = _mm256_permute4x64_epi64(packed, 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(ordered));
  }
  NIBBLE_VEC F load_f64(const std::byte* p) {
    const auto* numbers = reinterpret_cast<const double*>(p);
    return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd(numbers + 4)), _mm256_cvtpd_ps(_mm256_loadu_pd(numbers)));
  }
  // Integers of twice as many lanes, for maxima of 16-bit patterns.
  // Whole eights of blocks, as Kernels::dense_block_abs_max; returns how many blocks that were.
  template <uint64_t kBlockCols>
  NIBBLE_VEC uint64_t largest_of_bf16_blocks(const std::byte* in, uint64_t cols, float* amax) {
    return bf16_block_maxima<kBlockCols>(in, cols, amax);
  }
  NIBBLE_VEC I load_raw(const std::byte* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  NIBBLE_VEC I max_u16(I a, I b) { return _mm256_max_epu16(a, b); }

  NIBBLE_VEC uint32_t largest(I a) {
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(m));
  }
  NIBBLE_VEC float smallest_float(F a) {
    __m128 m = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    m = _mm_min_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_min_ss(m, _mm_shuffle_ps(m, m, 1)));
  }
  NIBBLE_VEC float largest_float(F a) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
  }
  // out[i] = the larger of out[i] and the largest of the non-negative integers a[i], for 8 vectors.
  NIBBLE_VEC void largest_of_8(const I* a, float* out) {
    const auto pair = [](I p, I q) { return max_int(_mm256_unpacklo_epi32(p, q), _mm256_unpackhi_epi32(p, q)); };
    const auto four = [](I p, I q) { return max_int(_mm256_unpacklo_epi64(p, q), _mm256_unpackhi_epi64(p, q)); };
    const I low = four(pair(a[0], a[1]), pair(a[2], a[3])), high = four(pair(a[4], a[5]), pair(a[6], a[7]));
    const I all = max_int(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
    store(out, from_bits(max_int(all, bits(load(out)))));
  }
  // out[i] = the extreme of out[i] and the lanes of a[i], for 8 vectors of floats.
  template <typename Combine>
  NIBBLE_VEC void combine_8(const F* a, float* out, Combine combine) {
    const auto pair = [&](F p, F q) { return combine(_mm256_unpacklo_ps(p, q), _mm256_unpackhi_ps(p, q)); };
    const auto four = [&](F p, F q) { return combine(_mm256_shuffle_ps(p, q, 0x44), _mm256_shuffle_ps(p, q, 0xee)); };
    const F low = four(pair(a[0], a[1]), pair(a[2], a[3])), high = four(pair(a[4], a[5]), pair(a[6], a[7]));
    const F all = combine(_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31));
    store(out, combine(all, load(out)));
  }
  NIBBLE_VEC void smallest_of_8(const F* a, float* out) {
    combine_8(a, out, [](F p, F q) { return _mm256_min_ps(p, q); });
  }
  NIBBLE_VEC void largest_floats_of_8(const F* a, float* out) {
    combine_8(a, out, [](F p, F q) { return _mm256_max_ps(p, q); });
  }
};

}  // namespace nibble::simd
