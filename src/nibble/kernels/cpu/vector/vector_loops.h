// What a forward pass does between matrix products: norms, rotations, activations, attention. One table per instruction
// set, with the same bits from each: a sum's order is fixed here and nowhere else. Everything is float32 but where
// float64 is said.
//
// Sums over n elements run in 16 lanes, element i in lane i % 16, ascending, from 0; the lanes are added as vec_sum()
// does. Products and their sum are one fused multiply-add.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nibble/base/cpu_features.h"

namespace nibble {

inline constexpr uint64_t kPageTokens = 64;  // of the KV cache: keys that attention takes at a time

enum class CacheElement : uint8_t { kF32, kBF16, kE4M3 };  // of keys and values

// The state of softmax(q · K) · V of some query rows over the pages seen so far, ascending.
struct AttentionState {
  uint64_t rows = 0, key_dim = 0, value_dim = 0;  // value_dim: a multiple of 16
  const float* q = nullptr;                       // (rows, key_dim), times the softmax's scale
  float* largest = nullptr;                       // (rows): of the scores so far; starts at -inf, or at the row's sink
  float* sum = nullptr;                           // (rows): of e^(score - largest); starts at 0, or at 1 for the sink
  float* out = nullptr;  // (rows, value_dim): weighted sum of values, not yet divided; starts at 0
};

// Keys and values of one page and head. An element of kE4M3 is worth its code's value times the token's scale, rounded
// once to float32: the result is that of a page which was expanded to float32 before.
struct AttentionPage {
  CacheElement element = CacheElement::kF32;
  const void* keys = nullptr;                                  // (key_dim, kPageTokens): transposed
  const void* values = nullptr;                                // (kPageTokens, value_dim)
  const float *key_scales = nullptr, *value_scales = nullptr;  // kE4M3: (kPageTokens) each
  const void* next = nullptr;   // keys that are read after this page: fetched meanwhile, if not null
  uint64_t begin = 0, end = 0;  // tokens that the rows see; others may hold anything
};

// Of two rows of logits, in float64; with them KL(a || b) is apart / a - log(a / b) - (top_a - top_b).
struct SoftmaxSums {
  double a = 0, b = 0;  // Σ e^(a - top_a), Σ e^(b - top_b)
  double apart = 0;     // Σ e^(a - top_a) · (a - b), without elements whose factor is 0
};

struct VectorLoops {
  Isa isa = Isa::kScalar;
  // out = weight · (x / sqrt(mean(x²) + eps)); null weight: 1. out may be x.
  void (*rms_norm)(const float* x, const float* weight, uint64_t n, float eps, float* out);
  void (*add)(float* x, const float* y, uint64_t n);                    // x += y
  void (*multiply_add)(float a, const float* x, uint64_t n, float* y);  // y = fma(a, x, y)
  void (*scale)(float* x, float a, uint64_t n);                         // x *= a
  // out = gate / (1 + e^-gate) · up
  void (*silu_mul)(const float* gate, const float* up, uint64_t n, float* out);
  // g = min(gate, limit), u = clamp(up, -limit, limit); out = g / (1 + e^(-alpha g)) · (u + 1)
  void (*clamped_swiglu)(const float* gate, const float* up, uint64_t n, float limit, float alpha, float* out);
  // x[i], x[i + half] rotated by the angle of cos[i], sin[i]: a c - b s, b c + a s, the second product fused.
  void (*rotate)(float* x, const float* cos, const float* sin, uint64_t half);
  // x = e^(x - largest), divided by their sum.
  void (*softmax)(float* x, uint64_t n);
  void (*sigmoid)(float* x, uint64_t n);
  float (*largest)(const float* x, uint64_t n);              // NaN apart; -inf if there is nothing else
  double (*exp_sum)(const float* x, uint64_t n, float top);  // float64: Σ e^(x - top), no x above top
  SoftmaxSums (*softmax_sums)(const float* a, float top_a, const float* b, float top_b, uint64_t n);
  void (*attend)(const AttentionState& state, const AttentionPage& page);
  void (*expand)(CacheElement element, const void* x, uint64_t n, float* out);  // codes' values, without scales
};

const VectorLoops& vector_loops();  // by best_isa()

const VectorLoops& scalar_vector_loops();
const VectorLoops& avx2_vector_loops();
const VectorLoops& avx512_vector_loops();

}  // namespace nibble
