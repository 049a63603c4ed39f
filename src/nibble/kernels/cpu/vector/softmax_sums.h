// Sums over the exponentials of logits, in float64: part of vector_loops_impl.h, compiled once for each instruction
// set. Two vectors of eight lanes are sixteen sums: element i is in lane i % 16.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "nibble/kernels/cpu/vector/vec16.h"
#include "nibble/kernels/cpu/vector/vec8d.h"
#include "nibble/kernels/cpu/vector/vector_loops.h"

namespace nibble {
namespace {

constexpr uint64_t kSumLanes = 16;

// Calls use(half, a, b) for each eight elements of both, the end filled up with -inf, whose exponential is 0.
template <typename Use>
NIBBLE_VEC void for_eights(const float* a, const float* b, uint64_t n, const Use& use) {
  uint64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (uint64_t half = 0; half < 2; ++half) {
      use(half, vecd_from_floats(a + i + 8 * half), vecd_from_floats(b + i + 8 * half));
    }
  }
  if (i == n) return;
  float rest[2][kSumLanes];
  for (auto& values : rest) std::fill_n(values, kSumLanes, -std::numeric_limits<float>::infinity());
  std::copy_n(a + i, n - i, rest[0]);
  std::copy_n(b + i, n - i, rest[1]);
  for (uint64_t half = 0; half < 2; ++half) {
    use(half, vecd_from_floats(rest[0] + 8 * half), vecd_from_floats(rest[1] + 8 * half));
  }
}

[[maybe_unused]] float largest(const float* x, uint64_t n) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  Vec16 most = vec_set(kNone);
  uint64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) most = vec_max(vec_load(x + i), most);  // NaN gives the second
  float top = vec_largest(most);
  for (; i < n; ++i) top = x[i] > top ? x[i] : top;
  return top;
}

[[maybe_unused]] double exp_sum(const float* x, uint64_t n, float top) {
  const Vec8d of_top = vecd_set(static_cast<double>(top));
  Vec8d sum[2] = {vecd_set(0), vecd_set(0)};
  for_eights(x, x, n, [&](uint64_t half, Vec8d a, Vec8d) { sum[half] = sum[half] + vecd_exp(a - of_top); });
  return vecd_sum(sum[0] + sum[1]);
}

[[maybe_unused]] SoftmaxSums softmax_sums(const float* a, float top_a, const float* b, float top_b, uint64_t n) {
  const Vec8d of_a = vecd_set(static_cast<double>(top_a)), of_b = vecd_set(static_cast<double>(top_b));
  const Vec8d zero = vecd_set(0), least = vecd_set(std::numeric_limits<double>::denorm_min());
  Vec8d sum_a[2] = {zero, zero}, sum_b[2] = {zero, zero}, apart[2] = {zero, zero};
  for_eights(a, b, n, [&](uint64_t half, Vec8d x, Vec8d y) {
    const Vec8d e = vecd_exp(x - of_a);
    sum_a[half] = sum_a[half] + e;
    sum_b[half] = sum_b[half] + vecd_exp(y - of_b);
    // What has no weight counts nothing, however far apart: 0 · inf would be NaN.
    apart[half] = apart[half] + vecd_choose_not_less(e, least, e * (x - y), zero);
  });
  return {vecd_sum(sum_a[0] + sum_a[1]), vecd_sum(sum_b[0] + sum_b[1]), vecd_sum(apart[0] + apart[1])};
}

}  // namespace
}  // namespace nibble
