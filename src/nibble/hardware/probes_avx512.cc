// Vectors of 64 bytes. AVX-512 has no matrices: where the processor has AMX, its rates are several times higher.
#include <immintrin.h>

#include "nibble/hardware/probes.h"
#include "nibble/hardware/read_loops.h"

namespace nibble {
namespace {

struct ReadVector {
  static constexpr size_t kBytes = 64;
  __m512i words;

  static ReadVector zero() { return {_mm512_setzero_si512()}; }
  static ReadVector load(const std::byte* at) { return {_mm512_loadu_si512(at)}; }
  static ReadVector mixed(const ReadVector& a, const ReadVector& b) { return {_mm512_xor_si512(a.words, b.words)}; }
  static uint64_t folded(const ReadVector& a) {
    alignas(64) uint64_t words[8];
    _mm512_store_si512(words, a.words);
    uint64_t all = 0;
    for (const uint64_t word : words) all ^= word;
    return all;
  }
};

void multiply_add(uint64_t steps, std::byte* state) {
  auto* numbers = reinterpret_cast<float*>(state);
  const __m512 half = _mm512_set1_ps(0.5F);
  const __m512 one = _mm512_set1_ps(1);
  __m512 s[kChains];
  for (size_t k = 0; k < kChains; ++k) s[k] = _mm512_load_ps(numbers + 16 * k);
  for (uint64_t i = 0; i < steps; ++i) {
    s[0] = _mm512_fmadd_ps(s[0], half, one);
    s[1] = _mm512_fmadd_ps(s[1], half, one);
    s[2] = _mm512_fmadd_ps(s[2], half, one);
    s[3] = _mm512_fmadd_ps(s[3], half, one);
    s[4] = _mm512_fmadd_ps(s[4], half, one);
    s[5] = _mm512_fmadd_ps(s[5], half, one);
    s[6] = _mm512_fmadd_ps(s[6], half, one);
    s[7] = _mm512_fmadd_ps(s[7], half, one);
    s[8] = _mm512_fmadd_ps(s[8], half, one);
    s[9] = _mm512_fmadd_ps(s[9], half, one);
    s[10] = _mm512_fmadd_ps(s[10], half, one);
    s[11] = _mm512_fmadd_ps(s[11], half, one);
  }
  for (size_t k = 0; k < kChains; ++k) _mm512_store_ps(numbers + 16 * k, s[k]);
}

__attribute__((target("avx512bf16"))) void dot_bf16(uint64_t steps, std::byte* state) {
  auto* numbers = reinterpret_cast<float*>(state);
  const __m512bh ones = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1), _mm512_set1_ps(1));
  __m512 s[kChains];
  for (size_t k = 0; k < kChains; ++k) s[k] = _mm512_load_ps(numbers + 16 * k);
  for (uint64_t i = 0; i < steps; ++i) {
    s[0] = _mm512_dpbf16_ps(s[0], ones, ones);
    s[1] = _mm512_dpbf16_ps(s[1], ones, ones);
    s[2] = _mm512_dpbf16_ps(s[2], ones, ones);
    s[3] = _mm512_dpbf16_ps(s[3], ones, ones);
    s[4] = _mm512_dpbf16_ps(s[4], ones, ones);
    s[5] = _mm512_dpbf16_ps(s[5], ones, ones);
    s[6] = _mm512_dpbf16_ps(s[6], ones, ones);
    s[7] = _mm512_dpbf16_ps(s[7], ones, ones);
    s[8] = _mm512_dpbf16_ps(s[8], ones, ones);
    s[9] = _mm512_dpbf16_ps(s[9], ones, ones);
    s[10] = _mm512_dpbf16_ps(s[10], ones, ones);
    s[11] = _mm512_dpbf16_ps(s[11], ones, ones);
  }
  for (size_t k = 0; k < kChains; ++k) _mm512_store_ps(numbers + 16 * k, s[k]);
}

__attribute__((target("avx512vnni"))) void dot_bytes(uint64_t steps, std::byte* state) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i s[kChains];
  for (size_t k = 0; k < kChains; ++k) s[k] = _mm512_load_si512(state + 64 * k);
  for (uint64_t i = 0; i < steps; ++i) {
    s[0] = _mm512_dpbusd_epi32(s[0], ones, ones);
    s[1] = _mm512_dpbusd_epi32(s[1], ones, ones);
    s[2] = _mm512_dpbusd_epi32(s[2], ones, ones);
    s[3] = _mm512_dpbusd_epi32(s[3], ones, ones);
    s[4] = _mm512_dpbusd_epi32(s[4], ones, ones);
    s[5] = _mm512_dpbusd_epi32(s[5], ones, ones);
    s[6] = _mm512_dpbusd_epi32(s[6], ones, ones);
    s[7] = _mm512_dpbusd_epi32(s[7], ones, ones);
    s[8] = _mm512_dpbusd_epi32(s[8], ones, ones);
    s[9] = _mm512_dpbusd_epi32(s[9], ones, ones);
    s[10] = _mm512_dpbusd_epi32(s[10], ones, ones);
    s[11] = _mm512_dpbusd_epi32(s[11], ones, ones);
  }
  for (size_t k = 0; k < kChains; ++k) _mm512_store_si512(state + 64 * k, s[k]);
}

}  // namespace

Probes avx512_probes() {
  Probes probes{Isa::kAvx512,
                read_probes<ReadVector>(),
                {"AVX-512 multiply-adds of 16 float32", kChains * 16 * 2.0, multiply_add},
                {},
                {}};
  if (__builtin_cpu_supports("avx512bf16") != 0)
    probes.bf16 = {"AVX-512 dot products of 32 BF16", kChains * 32 * 2.0, dot_bf16};
  if (__builtin_cpu_supports("avx512vnni") != 0)
    probes.int8 = {"AVX-512 VNNI dot products of 64 bytes", kChains * 64 * 2.0, dot_bytes};
  return probes;
}

}  // namespace nibble
