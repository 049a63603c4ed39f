// What a matrix kernel computes: some row groups of one matrix for some tokens, on one thread. Linear layers and
// grouped experts are loops over panels (linear.h, grouped.h).
//
// The arithmetic is fixed, whatever kernel carries it out, so that results do not depend on the kernel, the batch, the
// cut into panels or the number of threads, bit for bit. For row n, token t, runs r of `run_cols` columns in ascending
// order, with e = the run's scale times the matrix's multiplier (float32; 1 without scales):
//
//   float32 activations   p0 = fma chain over the run's even columns of (code value, x), p1 over its odd ones, both
//                         ascending from 0;  acc = fma(p0 + p1, e, acc)
//   INT8 activations      d = exact integer sum over the run of (q, code);  acc = fma(float(d), e * s, acc)
//   with minima           then  acc = fma(min, a, acc): a is the run's sum of x (even columns' sum plus odd ones'), or
//                         s times the sum of its codes
//
//   E2M1 activations      see cpu/reference/e2m1_panels.cc
//   BF16 activations      of BF16 weights: p = fma'(x1, w1, p), then p = fma'(x0, w0, p) for each two columns, from 0;
//                         acc = p + acc. fma' takes subnormal numbers for 0 and gives 0 for them, as the processors'
//                         dot products of BF16 pairs do
//
// with q and s as in activations.h. Code values: E2M1 its value, INT4 code - 8, code - zero or, with minima, code; INT8
// and floats themselves.
// Each operation is rounded to float32, to nearest even.
#pragma once

#include <cstdint>

#include "nibble/kernels/activations.h"
#include "nibble/kernels/e2m1_activations.h"
#include "nibble/kernels/weight_layout.h"

namespace nibble {

struct PanelTask {
  const ResidentMatrix* weights = nullptr;
  uint64_t group_begin = 0, group_end = 0;  // row groups
  uint64_t tokens = 0;
  const uint32_t* rows = nullptr;  // row of the activations of each token; null: 0, 1, 2 …
  float* out = nullptr;            // (tokens, N): only the rows of these groups are written, none beyond N
  uint64_t out_stride = 0;         // floats
  F32Activations f32;              // one of these, as the kernel takes them
  Int8Activations int8;
  BF16Activations bf16;
  E2M1Activations e2m1;

  uint64_t row_of(uint64_t token) const { return rows == nullptr ? token : rows[token]; }
};

using Panel = void (*)(const PanelTask& task);

}  // namespace nibble
