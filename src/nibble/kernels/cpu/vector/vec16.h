// Sixteen float32 lanes with the same results in every instruction set: one vector of AVX-512, two of AVX2, sixteen
// scalars. Sources that include this are compiled once for each (vector_loops_*.cc); every function is inlined into
// them and has internal linkage, so that no other code is ever linked against a copy made for a wider processor.
//
// Only operations that IEEE 754 defines to the bit: sums, products, quotients, roots, fused multiply-add, comparisons.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "nibble/numerics/simd/always_inline.h"

namespace nibble {
namespace {

#define NIBBLE_LANES(EXPRESSION)                            \
  Vec16 result;                                             \
  for (int i = 0; i < 16; ++i) result.lane[i] = EXPRESSION; \
  return result

#if defined(__AVX512F__)

struct Vec16 {
  __m512 v;
};
NIBBLE_VEC Vec16 vec_set(float x) { return {_mm512_set1_ps(x)}; }
NIBBLE_VEC Vec16 vec_load(const float* at) { return {_mm512_loadu_ps(at)}; }
NIBBLE_VEC void vec_store(float* at, Vec16 a) { _mm512_storeu_ps(at, a.v); }
NIBBLE_VEC Vec16 operator+(Vec16 a, Vec16 b) { return {_mm512_add_ps(a.v, b.v)}; }
NIBBLE_VEC Vec16 operator-(Vec16 a, Vec16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
NIBBLE_VEC Vec16 operator*(Vec16 a, Vec16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
NIBBLE_VEC Vec16 operator/(Vec16 a, Vec16 b) { return {_mm512_div_ps(a.v, b.v)}; }
NIBBLE_VEC Vec16 vec_fma(Vec16 a, Vec16 b, Vec16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
// a if a > b, else b: b where one of them is NaN.
NIBBLE_VEC Vec16 vec_max(Vec16 a, Vec16 b) { return {_mm512_max_ps(a.v, b.v)}; }
NIBBLE_VEC Vec16 vec_min(Vec16 a, Vec16 b) { return {_mm512_min_ps(a.v, b.v)}; }
// 2^n for whole n from -126 to 127.
NIBBLE_VEC Vec16 vec_exp2_whole(Vec16 n) {
  const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
}
// a where x >= limit (or NaN), else b.
NIBBLE_VEC Vec16 vec_choose_not_less(Vec16 x, Vec16 limit, Vec16 a, Vec16 b) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, limit.v, _CMP_LT_OQ), a.v, b.v)};
}
NIBBLE_VEC Vec16 vec_from_bf16(const uint16_t* at) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
// Thirty-two elements at a word's cost each: the even ones, then the odd ones. Half the work of two vec_from_bf16().
NIBBLE_VEC void vec_pair_from_bf16(const uint16_t* at, Vec16* even, Vec16* odd) {
  const __m512i words = _mm512_loadu_si512(at);
  *even = {_mm512_castsi512_ps(_mm512_slli_epi32(words, 16))};
  *odd = {_mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(static_cast<int>(0xffff0000))))};
}
// Even and odd elements to thirty-two in order, and back.
NIBBLE_VEC void vec_interleave(Vec16* a, Vec16* b) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512 first = _mm512_permutex2var_ps(a->v, low, b->v);
  b->v = _mm512_permutex2var_ps(a->v, _mm512_add_epi32(low, _mm512_set1_epi32(8)), b->v);
  a->v = first;
}
NIBBLE_VEC void vec_deinterleave(Vec16* a, Vec16* b) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512 first = _mm512_permutex2var_ps(a->v, even, b->v);
  b->v = _mm512_permutex2var_ps(a->v, _mm512_add_epi32(even, _mm512_set1_epi32(1)), b->v);
  a->v = first;
}
// Through float16, whose exponents and subnormals hold E4M3's, at 2^-8 times the value.
NIBBLE_VEC Vec16 vec_from_e4m3(const uint8_t* at) {
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i magnitudes = _mm_and_si128(codes, _mm_set1_epi8(0x7f));
  const __mmask16 nan = _mm_cmpeq_epi8_mask(magnitudes, _mm_set1_epi8(0x7f));
  const __m256i wide = _mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7);
  const __m512 small = _mm512_cvtph_ps(_mm256_and_si256(wide, _mm256_set1_epi16(static_cast<int16_t>(0xbfff))));
  const __m512 value = _mm512_mul_ps(small, _mm512_set1_ps(256));
  return {_mm512_mask_mov_ps(value, nan, _mm512_set1_ps(__builtin_nanf("")))};
}

#elif defined(__AVX2__)

struct Vec16 {
  __m256 v[2];
};
#define NIBBLE_HALVES(EXPRESSION)                          \
  Vec16 result;                                            \
  for (size_t i = 0; i < 2; ++i) result.v[i] = EXPRESSION; \
  return result
NIBBLE_VEC Vec16 vec_set(float x) { NIBBLE_HALVES(_mm256_set1_ps(x)); }
NIBBLE_VEC Vec16 vec_load(const float* at) { NIBBLE_HALVES(_mm256_loadu_ps(at + 8 * i)); }
NIBBLE_VEC void vec_store(float* at, Vec16 a) {
  for (size_t i = 0; i < 2; ++i) _mm256_storeu_ps(at + 8 * i, a.v[i]);
}
NIBBLE_VEC Vec16 operator+(Vec16 a, Vec16 b) { NIBBLE_HALVES(_mm256_add_ps(a.v[i], b.v[i])); }
NIBBLE_VEC Vec16 operator-(Vec16 a, Vec16 b) { NIBBLE_HALVES(_mm256_sub_ps(a.v[i], b.v[i])); }
NIBBLE_VEC Vec16 operator*(Vec16 a, Vec16 b) { NIBBLE_HALVES(_mm256_mul_ps(a.v[i], b.v[i])); }
NIBBLE_VEC Vec16 operator/(Vec16 a, Vec16 b) { NIBBLE_HALVES(_mm256_div_ps(a.v[i], b.v[i])); }
NIBBLE_VEC Vec16 vec_fma(Vec16 a, Vec16 b, Vec16 c) { NIBBLE_HALVES(_mm256_fmadd_ps(a.v[i], b.v[i], c.v[i])); }
NIBBLE_VEC Vec16 vec_max(Vec16 a, Vec16 b) { NIBBLE_HALVES(_mm256_max_ps(a.v[i], b.v[i])); }
NIBBLE_VEC Vec16 vec_min(Vec16 a, Vec16 b) { NIBBLE_HALVES(_mm256_min_ps(a.v[i], b.v[i])); }
NIBBLE_VEC Vec16 vec_exp2_whole(Vec16 n) {
  NIBBLE_HALVES(
      _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.v[i]), _mm256_set1_epi32(127)), 23)));
}
NIBBLE_VEC Vec16 vec_choose_not_less(Vec16 x, Vec16 limit, Vec16 a, Vec16 b) {
  NIBBLE_HALVES(_mm256_blendv_ps(a.v[i], b.v[i], _mm256_cmp_ps(x.v[i], limit.v[i], _CMP_LT_OQ)));
}
NIBBLE_VEC Vec16 vec_from_bf16(const uint16_t* at) {
  NIBBLE_HALVES(_mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 8 * i))), 16)));
}
NIBBLE_VEC Vec16 vec_from_e4m3(const uint8_t* at) {
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i magnitudes = _mm_and_si128(codes, _mm_set1_epi8(0x7f));
  const __m128i nan = _mm_cmpeq_epi8(magnitudes, _mm_set1_epi8(0x7f));
  const __m256i wide = _mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7);
  const __m256i half = _mm256_and_si256(wide, _mm256_set1_epi16(static_cast<int16_t>(0xbfff)));
  const __m128i halves[2] = {_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)};
  const __m128i nans[2] = {nan, _mm_unpackhi_epi64(nan, nan)};
  NIBBLE_HALVES(_mm256_blendv_ps(_mm256_mul_ps(_mm256_cvtph_ps(halves[i]), _mm256_set1_ps(256)),
                                 _mm256_set1_ps(__builtin_nanf("")),
                                 _mm256_castsi256_ps(_mm256_cvtepi8_epi32(nans[i]))));
}
#undef NIBBLE_HALVES

#else

struct Vec16 {
  float lane[16];
};
NIBBLE_VEC Vec16 vec_set(float x) { NIBBLE_LANES(x); }
NIBBLE_VEC Vec16 vec_load(const float* at) { NIBBLE_LANES(at[i]); }
NIBBLE_VEC void vec_store(float* at, Vec16 a) { std::memcpy(at, a.lane, sizeof(a.lane)); }
NIBBLE_VEC Vec16 operator+(Vec16 a, Vec16 b) { NIBBLE_LANES(a.lane[i] + b.lane[i]); }
NIBBLE_VEC Vec16 operator-(Vec16 a, Vec16 b) { NIBBLE_LANES(a.lane[i] - b.lane[i]); }
NIBBLE_VEC Vec16 operator*(Vec16 a, Vec16 b) { NIBBLE_LANES(a.lane[i] * b.lane[i]); }
NIBBLE_VEC Vec16 operator/(Vec16 a, Vec16 b) { NIBBLE_LANES(a.lane[i] / b.lane[i]); }
NIBBLE_VEC Vec16 vec_fma(Vec16 a, Vec16 b, Vec16 c) { NIBBLE_LANES(std::fma(a.lane[i], b.lane[i], c.lane[i])); }
NIBBLE_VEC Vec16 vec_max(Vec16 a, Vec16 b) { NIBBLE_LANES(a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]); }
NIBBLE_VEC Vec16 vec_min(Vec16 a, Vec16 b) { NIBBLE_LANES(a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]); }
NIBBLE_VEC Vec16 vec_exp2_whole(Vec16 n) {
  // Not of NaN, which no integer is: the product with it is NaN whatever this gives.
  NIBBLE_LANES(n.lane[i] == n.lane[i] ? std::ldexp(1.0F, static_cast<int>(n.lane[i])) : 1.0F);
}
NIBBLE_VEC Vec16 vec_choose_not_less(Vec16 x, Vec16 limit, Vec16 a, Vec16 b) {
  NIBBLE_LANES(x.lane[i] < limit.lane[i] ? b.lane[i] : a.lane[i]);
}
NIBBLE_VEC float bf16_lane(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}
NIBBLE_VEC Vec16 vec_from_bf16(const uint16_t* at) { NIBBLE_LANES(bf16_lane(at[i])); }
NIBBLE_VEC float e4m3_lane(uint8_t code) {
  const int magnitude = code & 0x7f, mantissa = magnitude & 7, exponent = magnitude >> 3;
  const float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                    : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  if (magnitude == 0x7f) return __builtin_nanf("");
  return code & 0x80 ? -value : value;
}
NIBBLE_VEC Vec16 vec_from_e4m3(const uint8_t* at) { NIBBLE_LANES(e4m3_lane(at[i])); }

#endif
#undef NIBBLE_LANES

// Lanes i and i + 8, then i and i + 4, i and i + 2, i and i + 1: one order everywhere.
#if defined(__AVX2__)
struct Halved {
  __m256 low, high;
};
#if defined(__AVX512F__)
NIBBLE_VEC Halved halved(Vec16 a) { return {_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1)}; }
#else
NIBBLE_VEC Halved halved(Vec16 a) { return {a.v[0], a.v[1]}; }
#endif
NIBBLE_VEC float vec_sum(Vec16 a) {
  const Halved half = halved(a);
  const __m256 eight = _mm256_add_ps(half.low, half.high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
NIBBLE_VEC float vec_largest(Vec16 a) {
  const Halved half = halved(a);
  const __m256 eight = _mm256_max_ps(half.low, half.high);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
#else
template <typename Combine>
NIBBLE_VEC float vec_reduce(Vec16 a, const Combine& combine) {
  for (int half = 8; half >= 1; half /= 2) {
    for (int i = 0; i < half; ++i) a.lane[i] = combine(a.lane[i], a.lane[i + half]);
  }
  return a.lane[0];
}
NIBBLE_VEC float vec_sum(Vec16 a) {
  return vec_reduce(a, [](float x, float y) { return x + y; });
}
NIBBLE_VEC float vec_largest(Vec16 a) {
  return vec_reduce(a, [](float x, float y) { return x > y ? x : y; });
}
#endif

// e^x to about one unit in the last place: 0 below -87, e^88 above 88, NaN for NaN; e^0 is 1.
NIBBLE_VEC Vec16 vec_exp(Vec16 x) {
  const Vec16 lowest = vec_set(-87.0F);
  // Both give their second argument for NaN.
  const Vec16 inside = vec_min(vec_set(88.0F), vec_max(lowest, x));
  const Vec16 magic = vec_set(12582912.0F);  // 1.5 · 2^23: adding it rounds to a whole number
  const Vec16 n = vec_fma(inside, vec_set(1.44269504F), magic) - magic;
  // ln 2 in two parts, the first of so few bits that its product with n is exact.
  const Vec16 r = vec_fma(n, vec_set(2.12194440e-4F), vec_fma(n, vec_set(-0.693359375F), inside));
  Vec16 p = vec_set(1.98756915e-4F);
  p = vec_fma(p, r, vec_set(1.39819995e-3F));
  p = vec_fma(p, r, vec_set(8.33345191e-3F));
  p = vec_fma(p, r, vec_set(4.16657959e-2F));
  p = vec_fma(p, r, vec_set(1.66666655e-1F));
  p = vec_fma(p, r, vec_set(5.00000012e-1F));
  const Vec16 e = vec_fma(p, r * r, r) + vec_set(1.0F);
  return vec_choose_not_less(x, lowest, e * vec_exp2_whole(n), vec_set(0.0F));
}

}  // namespace
}  // namespace nibble
