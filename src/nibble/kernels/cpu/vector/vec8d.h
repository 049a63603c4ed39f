// Eight float64 lanes with the same results in every instruction set, as vec16.h's sixteen of float32: one vector of
// AVX-512, two of AVX2, eight scalars.
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

#if defined(__AVX512F__)

struct Vec8d {
  __m512d v;
};
NIBBLE_VEC Vec8d vecd_set(double x) { return {_mm512_set1_pd(x)}; }
NIBBLE_VEC Vec8d vecd_from_floats(const float* at) { return {_mm512_cvtps_pd(_mm256_loadu_ps(at))}; }
NIBBLE_VEC void vecd_store(double* at, Vec8d a) { _mm512_storeu_pd(at, a.v); }
NIBBLE_VEC Vec8d operator+(Vec8d a, Vec8d b) { return {_mm512_add_pd(a.v, b.v)}; }
NIBBLE_VEC Vec8d operator-(Vec8d a, Vec8d b) { return {_mm512_sub_pd(a.v, b.v)}; }
NIBBLE_VEC Vec8d operator*(Vec8d a, Vec8d b) { return {_mm512_mul_pd(a.v, b.v)}; }
NIBBLE_VEC Vec8d vecd_fma(Vec8d a, Vec8d b, Vec8d c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
// 2^n from 1.5 · 2^52 + n, whole n from -1022 to 1023: its low bits are n's.
NIBBLE_VEC Vec8d vecd_exp2_of_shifted(Vec8d shifted) {
  const __m512i exponent = _mm512_slli_epi64(_mm512_castpd_si512(shifted.v), 52);
  return {_mm512_castsi512_pd(_mm512_add_epi64(exponent, _mm512_castpd_si512(_mm512_set1_pd(1))))};
}
// a where x >= limit (or NaN), else b.
NIBBLE_VEC Vec8d vecd_choose_not_less(Vec8d x, Vec8d limit, Vec8d a, Vec8d b) {
  return {_mm512_mask_blend_pd(_mm512_cmp_pd_mask(x.v, limit.v, _CMP_LT_OQ), a.v, b.v)};
}

#elif defined(__AVX2__)

struct Vec8d {
  __m256d v[2];
};
#define NIBBLE_HALVES(EXPRESSION)                          \
  Vec8d result;                                            \
  for (size_t i = 0; i < 2; ++i) result.v[i] = EXPRESSION; \
  return result
NIBBLE_VEC Vec8d vecd_set(double x) { NIBBLE_HALVES(_mm256_set1_pd(x)); }
NIBBLE_VEC Vec8d vecd_from_floats(const float* at) { NIBBLE_HALVES(_mm256_cvtps_pd(_mm_loadu_ps(at + 4 * i))); }
NIBBLE_VEC void vecd_store(double* at, Vec8d a) {
  for (size_t i = 0; i < 2; ++i) _mm256_storeu_pd(at + 4 * i, a.v[i]);
}
NIBBLE_VEC Vec8d operator+(Vec8d a, Vec8d b) { NIBBLE_HALVES(_mm256_add_pd(a.v[i], b.v[i])); }
NIBBLE_VEC Vec8d operator-(Vec8d a, Vec8d b) { NIBBLE_HALVES(_mm256_sub_pd(a.v[i], b.v[i])); }
NIBBLE_VEC Vec8d operator*(Vec8d a, Vec8d b) { NIBBLE_HALVES(_mm256_mul_pd(a.v[i], b.v[i])); }
NIBBLE_VEC Vec8d vecd_fma(Vec8d a, Vec8d b, Vec8d c) { NIBBLE_HALVES(_mm256_fmadd_pd(a.v[i], b.v[i], c.v[i])); }
NIBBLE_VEC Vec8d vecd_exp2_of_shifted(Vec8d shifted) {
  const __m256i one = _mm256_castpd_si256(_mm256_set1_pd(1));
  NIBBLE_HALVES(_mm256_castsi256_pd(_mm256_add_epi64(_mm256_slli_epi64(_mm256_castpd_si256(shifted.v[i]), 52), one)));
}
NIBBLE_VEC Vec8d vecd_choose_not_less(Vec8d x, Vec8d limit, Vec8d a, Vec8d b) {
  NIBBLE_HALVES(_mm256_blendv_pd(a.v[i], b.v[i], _mm256_cmp_pd(x.v[i], limit.v[i], _CMP_LT_OQ)));
}
#undef NIBBLE_HALVES

#else

struct Vec8d {
  double lane[8];
};
#define NIBBLE_LANES(EXPRESSION)                           \
  Vec8d result;                                            \
  for (int i = 0; i < 8; ++i) result.lane[i] = EXPRESSION; \
  return result
NIBBLE_VEC Vec8d vecd_set(double x) { NIBBLE_LANES(x); }
NIBBLE_VEC Vec8d vecd_from_floats(const float* at) { NIBBLE_LANES(static_cast<double>(at[i])); }
NIBBLE_VEC void vecd_store(double* at, Vec8d a) { std::memcpy(at, a.lane, sizeof(a.lane)); }
NIBBLE_VEC Vec8d operator+(Vec8d a, Vec8d b) { NIBBLE_LANES(a.lane[i] + b.lane[i]); }
NIBBLE_VEC Vec8d operator-(Vec8d a, Vec8d b) { NIBBLE_LANES(a.lane[i] - b.lane[i]); }
NIBBLE_VEC Vec8d operator*(Vec8d a, Vec8d b) { NIBBLE_LANES(a.lane[i] * b.lane[i]); }
NIBBLE_VEC Vec8d vecd_fma(Vec8d a, Vec8d b, Vec8d c) { NIBBLE_LANES(std::fma(a.lane[i], b.lane[i], c.lane[i])); }
NIBBLE_VEC double exp2_of_shifted(double shifted) {
  uint64_t bits = 0, one = 0;
  const double value = 1;
  std::memcpy(&bits, &shifted, sizeof(bits));
  std::memcpy(&one, &value, sizeof(one));
  bits = (bits << 52) + one;
  std::memcpy(&shifted, &bits, sizeof(bits));
  return shifted;
}
NIBBLE_VEC Vec8d vecd_exp2_of_shifted(Vec8d shifted) { NIBBLE_LANES(exp2_of_shifted(shifted.lane[i])); }
NIBBLE_VEC Vec8d vecd_choose_not_less(Vec8d x, Vec8d limit, Vec8d a, Vec8d b) {
  NIBBLE_LANES(x.lane[i] < limit.lane[i] ? b.lane[i] : a.lane[i]);
}
#undef NIBBLE_LANES

#endif

// Lanes i and i + 4, then i and i + 2, i and i + 1: one order everywhere.
NIBBLE_VEC double vecd_sum(Vec8d a) {
  double lane[8];
  vecd_store(lane, a);
  for (int half = 4; half >= 1; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

// e^x for x <= 0, to about one unit in the last place: 0 below -708, NaN for NaN; e^0 is 1.
NIBBLE_VEC Vec8d vecd_exp(Vec8d x) {
  const Vec8d lowest = vecd_set(-708), magic = vecd_set(6755399441055744.0);  // 1.5 · 2^52: rounds to a whole number
  const Vec8d shifted = vecd_fma(x, vecd_set(1.4426950408889634), magic);
  const Vec8d n = shifted - magic;
  // ln 2 in two parts, the first of so few bits that its product with n is exact.
  const Vec8d r =
      vecd_fma(n, vecd_set(-1.90821492927058770002e-10), vecd_fma(n, vecd_set(-6.93147180369123816490e-01), x));
  // Taylor's up to r^12: |r| <= ln 2 / 2, so that r^13 / 13! is below 2e-16.
  constexpr double kInverse[] = {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                                 1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5,         1};
  Vec8d p = vecd_set(1.0 / 479001600);
  for (const double factor : kInverse) p = vecd_fma(p, r, vecd_set(factor));
  const Vec8d e = vecd_fma(p, r, vecd_set(1)) * vecd_exp2_of_shifted(shifted);
  return vecd_choose_not_less(x, lowest, e, vecd_set(0));
}

}  // namespace
}  // namespace nibble
