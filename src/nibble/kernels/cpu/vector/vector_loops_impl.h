// The loops of vector_loops.h, compiled once for each instruction set (vec16.h says how).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "nibble/kernels/cpu/vector/softmax_sums.h"
#include "nibble/kernels/cpu/vector/vec16.h"
#include "nibble/kernels/cpu/vector/vector_loops.h"

namespace nibble {
namespace {

constexpr uint64_t kLanes = 16;

// The last n % 16 elements, filled up.
NIBBLE_VEC Vec16 load_rest(const float* at, uint64_t count, float filler) {
  float lane[kLanes];
  for (uint64_t i = 0; i < kLanes; ++i) lane[i] = i < count ? at[i] : filler;
  return vec_load(lane);
}

NIBBLE_VEC void store_rest(float* at, uint64_t count, Vec16 a) {
  float lane[kLanes];
  vec_store(lane, a);
  for (uint64_t i = 0; i < count; ++i) at[i] = lane[i];
}

// out[i] = f(a[i]) and f(a[i], b[i]); filled-up lanes are 0.
template <typename F>
NIBBLE_VEC void map(const float* a, uint64_t n, float* out, const F& f) {
  uint64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) vec_store(out + i, f(vec_load(a + i)));
  if (i < n) store_rest(out + i, n - i, f(load_rest(a + i, n - i, 0)));
}

template <typename F>
NIBBLE_VEC void map2(const float* a, const float* b, uint64_t n, float* out, const F& f) {
  uint64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) vec_store(out + i, f(vec_load(a + i), vec_load(b + i)));
  if (i < n) store_rest(out + i, n - i, f(load_rest(a + i, n - i, 0), load_rest(b + i, n - i, 0)));
}

void rms_norm(const float* x, const float* weight, uint64_t n, float eps, float* out) {
  Vec16 squares = vec_set(0);
  uint64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vec16 v = vec_load(x + i);
    squares = vec_fma(v, v, squares);
  }
  if (i < n) {
    const Vec16 v = load_rest(x + i, n - i, 0);
    squares = vec_fma(v, v, squares);
  }
  const Vec16 factor = vec_set(1.0F / std::sqrt(vec_sum(squares) / static_cast<float>(n) + eps));
  if (weight == nullptr) {
    map(x, n, out, [&](Vec16 v) { return v * factor; });
  } else {
    map2(x, weight, n, out, [&](Vec16 v, Vec16 w) { return w * (v * factor); });
  }
}

void add(float* x, const float* y, uint64_t n) {
  map2(x, y, n, x, [](Vec16 a, Vec16 b) { return a + b; });
}

void multiply_add(float a, const float* x, uint64_t n, float* y) {
  const Vec16 factor = vec_set(a);
  map2(x, y, n, y, [&](Vec16 v, Vec16 w) { return vec_fma(factor, v, w); });
}

void scale(float* x, float a, uint64_t n) {
  const Vec16 factor = vec_set(a);
  map(x, n, x, [&](Vec16 v) { return v * factor; });
}

NIBBLE_VEC Vec16 logistic(Vec16 x, float alpha) {
  const Vec16 one = vec_set(1);
  return one / (one + vec_exp(x * vec_set(-alpha)));
}

void silu_mul(const float* gate, const float* up, uint64_t n, float* out) {
  map2(gate, up, n, out, [](Vec16 g, Vec16 u) { return g * logistic(g, 1) * u; });
}

void clamped_swiglu(const float* gate, const float* up, uint64_t n, float limit, float alpha, float* out) {
  const Vec16 most = vec_set(limit), least = vec_set(-limit), one = vec_set(1);
  map2(gate, up, n, out, [&](Vec16 g, Vec16 u) {
    const Vec16 below = vec_min(most, g);  // NaN stays: min and max give their second argument
    return below * logistic(below, alpha) * (vec_max(least, vec_min(most, u)) + one);
  });
}

void rotate(float* x, const float* cos, const float* sin, uint64_t half) {
  float* y = x + half;
  for (uint64_t i = 0; i < half; i += kLanes) {
    const uint64_t count = std::min(kLanes, half - i);
    const Vec16 a = load_rest(x + i, count, 0), b = load_rest(y + i, count, 0);
    const Vec16 c = load_rest(cos + i, count, 0), s = load_rest(sin + i, count, 0);
    store_rest(x + i, count, vec_fma(b * vec_set(-1), s, a * c));
    store_rest(y + i, count, vec_fma(a, s, b * c));
  }
}

void softmax(float* x, uint64_t n) {
  float largest = -std::numeric_limits<float>::infinity();
  for (uint64_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  const Vec16 top = vec_set(largest);
  Vec16 sums = vec_set(0);
  uint64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vec16 e = vec_exp(vec_load(x + i) - top);
    vec_store(x + i, e);
    sums = sums + e;
  }
  if (i < n) {
    const Vec16 e = vec_exp(load_rest(x + i, n - i, -std::numeric_limits<float>::infinity()) - top);
    store_rest(x + i, n - i, e);
    sums = sums + e;
  }
  const Vec16 total = vec_set(vec_sum(sums));
  map(x, n, x, [&](Vec16 v) { return v / total; });
}

void sigmoid(float* x, uint64_t n) {
  map(x, n, x, [](Vec16 v) { return logistic(v, 1); });
}

constexpr uint64_t kPageVectors = kPageTokens / kLanes;
// Query rows and vectors of a block whose sums stay in registers; no result depends on them.
#if defined(__AVX512F__)
constexpr uint64_t kBlockRows = 8, kBlockVectors = 2;
constexpr bool kHasPairs = true;
#else
constexpr uint64_t kBlockRows = 4, kBlockVectors = 1;
constexpr bool kHasPairs = false;
#endif

// Sixteen elements from `index` on, without scales.
template <CacheElement kElement>
NIBBLE_VEC Vec16 load_elements(const void* at, uint64_t index) {
  if constexpr (kElement == CacheElement::kF32) return vec_load(static_cast<const float*>(at) + index);
  if constexpr (kElement == CacheElement::kBF16) return vec_from_bf16(static_cast<const uint16_t*>(at) + index);
  if constexpr (kElement == CacheElement::kE4M3) return vec_from_e4m3(static_cast<const uint8_t*>(at) + index);
}

// kVectors · 16 elements from `index` on, without scales: in order, or for pairs of BF16 the even ones before the odd
// ones, which put_in_order() and take_out_of_order() know.
template <CacheElement kElement, uint64_t kVectors>
constexpr bool kPaired = kHasPairs && kElement == CacheElement::kBF16 && kVectors == 2;

template <CacheElement kElement, uint64_t kVectors>
NIBBLE_VEC void load_block(const void* at, uint64_t index, Vec16* block) {
#if defined(__AVX512F__)
  if constexpr (kPaired<kElement, kVectors>) {
    vec_pair_from_bf16(static_cast<const uint16_t*>(at) + index, &block[0], &block[1]);
    return;
  }
#endif
  for (uint64_t v = 0; v < kVectors; ++v) block[v] = load_elements<kElement>(at, index + v * kLanes);
}

template <CacheElement kElement, uint64_t kVectors>
NIBBLE_VEC void put_in_order([[maybe_unused]] Vec16* block) {
#if defined(__AVX512F__)
  if constexpr (kPaired<kElement, kVectors>) vec_interleave(&block[0], &block[1]);
#endif
}

template <CacheElement kElement, uint64_t kVectors>
NIBBLE_VEC void take_out_of_order([[maybe_unused]] Vec16* block) {
#if defined(__AVX512F__)
  if constexpr (kPaired<kElement, kVectors>) vec_deinterleave(&block[0], &block[1]);
#endif
}

// What a loop of kVectors · 16 elements a step fetches for the one after it: step by step as many bytes as it reads, so
// that memory works while the sums do. A page is too short for processors to see where it goes on.
template <CacheElement kElement, uint64_t kVectors>
struct Fetch {
  const void* at;
  void step(uint64_t index) const {
    constexpr uint64_t kBytes = kElement == CacheElement::kF32 ? 4 : kElement == CacheElement::kBF16 ? 2 : 1;
    const char* const line = static_cast<const char*>(at) + index * kVectors * kLanes * kBytes;
    for (uint64_t b = 0; b < kVectors * kLanes * kBytes; b += 64)
      __builtin_prefetch(line + b, 0, 2);  // into the second level: three pages are the first one
  }
};

// Scores of kRows query rows with kVectors · 16 keys of the page: chains over the key's width, ascending.
template <CacheElement kElement, uint64_t kRows, uint64_t kVectors>
NIBBLE_VEC void block_scores(const AttentionPage& page, uint64_t token, const float* q, uint64_t key_dim,
                             float* scores) {
  Vec16 sums[kRows][kVectors], scales[kVectors];
  for (auto& row : sums) std::fill_n(row, kVectors, vec_set(0));
  if constexpr (kElement == CacheElement::kE4M3) {
    for (uint64_t v = 0; v < kVectors; ++v) scales[v] = vec_load(page.key_scales + token + v * kLanes);
  }
  const Fetch<kElement, kVectors> fetch{page.values};
  const uint64_t first = token / (kVectors * kLanes) * key_dim;
  for (uint64_t d = 0; d < key_dim; ++d) {
    fetch.step(first + d);
    Vec16 keys[kVectors];
    load_block<kElement, kVectors>(page.keys, d * kPageTokens + token, keys);
    if constexpr (kElement == CacheElement::kE4M3) {
      for (uint64_t v = 0; v < kVectors; ++v) keys[v] = keys[v] * scales[v];
    }
    for (uint64_t r = 0; r < kRows; ++r) {
      const Vec16 factor = vec_set(q[r * key_dim + d]);
      for (uint64_t v = 0; v < kVectors; ++v) sums[r][v] = vec_fma(factor, keys[v], sums[r][v]);
    }
  }
  for (uint64_t r = 0; r < kRows; ++r) {
    put_in_order<kElement, kVectors>(sums[r]);
    for (uint64_t v = 0; v < kVectors; ++v) vec_store(scores + r * kPageTokens + token + v * kLanes, sums[r][v]);
  }
}

NIBBLE_VEC float largest_score(const AttentionPage& page, float* scores) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  std::fill_n(scores, page.begin, kNone);
  std::fill_n(scores + page.end, kPageTokens - page.end, kNone);
  Vec16 most = vec_load(scores);
  for (uint64_t v = 1; v < kPageVectors; ++v) most = vec_max(most, vec_load(scores + v * kLanes));
  return vec_largest(most);
}

// Scores to weights e^(score - largest); their sum.
NIBBLE_VEC float weights_of_scores(float largest, float* scores) {
  Vec16 sums = vec_set(0);
  for (uint64_t v = 0; v < kPageVectors; ++v) {
    const Vec16 weight = vec_exp(vec_load(scores + v * kLanes) - vec_set(largest));
    vec_store(scores + v * kLanes, weight);
    sums = sums + weight;
  }
  return vec_sum(sums);
}

// Scores of kRows rows to weights, with what the sums so far have to be multiplied by in `shrink` (16).
template <uint64_t kRows>
NIBBLE_VEC void page_weights(const AttentionPage& page, float* scores, float* largest, float* sum, float* shrink) {
  static_assert(kRows <= kLanes);
  float top[kRows];
  std::fill_n(shrink, kLanes, 0.0F);
  for (uint64_t r = 0; r < kRows; ++r) {
    const float of_page = largest_score(page, scores + r * kPageTokens);
    top[r] = of_page > largest[r] ? of_page : largest[r];
    shrink[r] = largest[r] - top[r];
  }
  vec_store(shrink, vec_exp(vec_load(shrink)));
  for (uint64_t r = 0; r < kRows; ++r) {
    largest[r] = top[r];
    sum[r] = std::fma(sum[r], shrink[r], weights_of_scores(top[r], scores + r * kPageTokens));
  }
}

// out = out · shrink + weights · values for kRows rows and kVectors · 16 columns, token after token.
template <CacheElement kElement, uint64_t kRows, uint64_t kVectors>
NIBBLE_VEC void block_values(const AttentionPage& page, uint64_t value_dim, uint64_t column, const float* weights,
                             const float* shrink, float* out) {
  Vec16 sums[kRows][kVectors];
  for (uint64_t r = 0; r < kRows; ++r) {
    for (uint64_t v = 0; v < kVectors; ++v) {
      sums[r][v] = vec_load(out + r * value_dim + column + v * kLanes) * vec_set(shrink[r]);
    }
    take_out_of_order<kElement, kVectors>(sums[r]);
  }
  const Fetch<kElement, kVectors> fetch{page.next == nullptr ? page.values : page.next};
  const uint64_t first = column / (kVectors * kLanes) * kPageTokens;
  for (uint64_t t = page.begin; t < page.end; ++t) {
    fetch.step(first + t);
    Vec16 values[kVectors];
    load_block<kElement, kVectors>(page.values, t * value_dim + column, values);
    if constexpr (kElement == CacheElement::kE4M3) {
      for (uint64_t v = 0; v < kVectors; ++v) values[v] = values[v] * vec_set(page.value_scales[t]);
    }
    for (uint64_t r = 0; r < kRows; ++r) {
      const Vec16 weight = vec_set(weights[r * kPageTokens + t]);
      for (uint64_t v = 0; v < kVectors; ++v) sums[r][v] = vec_fma(weight, values[v], sums[r][v]);
    }
  }
  for (uint64_t r = 0; r < kRows; ++r) {
    put_in_order<kElement, kVectors>(sums[r]);
    for (uint64_t v = 0; v < kVectors; ++v) vec_store(out + r * value_dim + column + v * kLanes, sums[r][v]);
  }
}

template <CacheElement kElement, uint64_t kRows>
NIBBLE_VEC void attend_rows(const AttentionState& state, const AttentionPage& page, uint64_t row) {
  float scores[kRows * kPageTokens];
  float shrink[kLanes];
  const float* q = state.q + row * state.key_dim;
  float* out = state.out + row * state.value_dim;
  for (uint64_t t = 0; t < kPageTokens; t += kBlockVectors * kLanes) {
    block_scores<kElement, kRows, kBlockVectors>(page, t, q, state.key_dim, scores);
  }
  page_weights<kRows>(page, scores, state.largest + row, state.sum + row, shrink);
  uint64_t column = 0;
  for (; column + kBlockVectors * kLanes <= state.value_dim; column += kBlockVectors * kLanes) {
    block_values<kElement, kRows, kBlockVectors>(page, state.value_dim, column, scores, shrink, out);
  }
  for (; column < state.value_dim; column += kLanes) {
    block_values<kElement, kRows, 1>(page, state.value_dim, column, scores, shrink, out);
  }
}

template <CacheElement kElement>
void attend_page(const AttentionState& state, const AttentionPage& page) {
  uint64_t row = 0;
  for (; row + kBlockRows <= state.rows; row += kBlockRows) attend_rows<kElement, kBlockRows>(state, page, row);
  if constexpr (kBlockRows > 4) {
    for (; row + 4 <= state.rows; row += 4) attend_rows<kElement, 4>(state, page, row);
  }
  for (; row < state.rows; ++row) attend_rows<kElement, 1>(state, page, row);
}

void attend(const AttentionState& state, const AttentionPage& page) {
  switch (page.element) {
    case CacheElement::kF32: attend_page<CacheElement::kF32>(state, page); return;
    case CacheElement::kBF16: attend_page<CacheElement::kBF16>(state, page); return;
    case CacheElement::kE4M3: attend_page<CacheElement::kE4M3>(state, page); return;
  }
}

template <CacheElement kElement>
void expand_elements(const void* x, uint64_t n, float* out) {
  constexpr uint64_t kBytes = kElement == CacheElement::kF32 ? 4 : kElement == CacheElement::kBF16 ? 2 : 1;
  uint64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) vec_store(out + i, load_elements<kElement>(x, i));
  if (i == n) return;
  std::byte padded[kLanes * kBytes] = {};
  std::memcpy(padded, static_cast<const std::byte*>(x) + i * kBytes, (n - i) * kBytes);
  store_rest(out + i, n - i, load_elements<kElement>(padded, 0));
}

void expand(CacheElement element, const void* x, uint64_t n, float* out) {
  switch (element) {
    case CacheElement::kF32: std::memcpy(out, x, n * sizeof(float)); return;
    case CacheElement::kBF16: expand_elements<CacheElement::kBF16>(x, n, out); return;
    case CacheElement::kE4M3: expand_elements<CacheElement::kE4M3>(x, n, out); return;
  }
}

[[maybe_unused]] VectorLoops table(Isa isa) {
  return {isa,     rms_norm, add,     multiply_add, scale,        silu_mul, clamped_swiglu, rotate,
          softmax, sigmoid,  largest, exp_sum,      softmax_sums, attend,   expand};
}

}  // namespace
}  // namespace nibble
