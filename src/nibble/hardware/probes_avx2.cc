// Vectors of 32 bytes.
#include <immintrin.h>

#include "nibble/hardware/probes.h"
#include "nibble/hardware/read_loops.h"

namespace nibble {
namespace {

struct ReadVector {
  static constexpr size_t kBytes = 32;
  __m256i words;

  static ReadVector zero() { return {_mm256_setzero_si256()}; }
  static ReadVector load(const std::byte* at) { return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))}; }
  static ReadVector mixed(const ReadVector& a, const ReadVector& b) { return {_mm256_xor_si256(a.words, b.words)}; }
  static uint64_t folded(const ReadVector& a) {
    const __m128i half = _mm_xor_si128(_mm256_castsi256_si128(a.words), _mm256_extracti128_si256(a.words, 1));
    return static_cast<uint64_t>(_mm_cvtsi128_si64(half)) ^ static_cast<uint64_t>(_mm_extract_epi64(half, 1));
  }
};

void multiply_add(uint64_t steps, std::byte* state) {
  auto* numbers = reinterpret_cast<float*>(state);
  const __m256 half = _mm256_set1_ps(0.5F);
  const __m256 one = _mm256_set1_ps(1);
  __m256 s[kChains];
  for (size_t k = 0; k < kChains; ++k) s[k] = _mm256_load_ps(numbers + 8 * k);
  for (uint64_t i = 0; i < steps; ++i) {
    s[0] = _mm256_fmadd_ps(s[0], half, one);
    s[1] = _mm256_fmadd_ps(s[1], half, one);
    s[2] = _mm256_fmadd_ps(s[2], half, one);
    s[3] = _mm256_fmadd_ps(s[3], half, one);
    s[4] = _mm256_fmadd_ps(s[4], half, one);
    s[5] = _mm256_fmadd_ps(s[5], half, one);
    s[6] = _mm256_fmadd_ps(s[6], half, one);
    s[7] = _mm256_fmadd_ps(s[7], half, one);
    s[8] = _mm256_fmadd_ps(s[8], half, one);
    s[9] = _mm256_fmadd_ps(s[9], half, one);
    s[10] = _mm256_fmadd_ps(s[10], half, one);
    s[11] = _mm256_fmadd_ps(s[11], half, one);
  }
  for (size_t k = 0; k < kChains; ++k) _mm256_store_ps(numbers + 8 * k, s[k]);
}

__attribute__((target("avxvnni"))) void dot_bytes(uint64_t steps, std::byte* state) {
  auto* sums = reinterpret_cast<__m256i*>(state);
  const __m256i ones = _mm256_set1_epi8(1);
  __m256i s[kChains];
  for (size_t k = 0; k < kChains; ++k) s[k] = _mm256_load_si256(sums + k);
  for (uint64_t i = 0; i < steps; ++i) {
    s[0] = _mm256_dpbusd_avx_epi32(s[0], ones, ones);
    s[1] = _mm256_dpbusd_avx_epi32(s[1], ones, ones);
    s[2] = _mm256_dpbusd_avx_epi32(s[2], ones, ones);
    s[3] = _mm256_dpbusd_avx_epi32(s[3], ones, ones);
    s[4] = _mm256_dpbusd_avx_epi32(s[4], ones, ones);
    s[5] = _mm256_dpbusd_avx_epi32(s[5], ones, ones);
    s[6] = _mm256_dpbusd_avx_epi32(s[6], ones, ones);
    s[7] = _mm256_dpbusd_avx_epi32(s[7], ones, ones);
    s[8] = _mm256_dpbusd_avx_epi32(s[8], ones, ones);
    s[9] = _mm256_dpbusd_avx_epi32(s[9], ones, ones);
    s[10] = _mm256_dpbusd_avx_epi32(s[10], ones, ones);
    s[11] = _mm256_dpbusd_avx_epi32(s[11], ones, ones);
  }
  for (size_t k = 0; k < kChains; ++k) _mm256_store_si256(sums + k, s[k]);
}

}  // namespace

Probes avx2_probes() {
  Probes probes{Isa::kAvx2,
                read_probes<ReadVector>(),
                {"AVX2 multiply-adds of 8 float32", kChains * 8 * 2.0, multiply_add},
                {},
                {}};
  if (__builtin_cpu_supports("avxvnni") != 0)
    probes.int8 = {"AVX-VNNI dot products of 32 bytes", kChains * 32 * 2.0, dot_bytes};
  return probes;
}

}  // namespace nibble
