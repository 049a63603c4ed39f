// What a pass does, counted where it multiplies: the one count that floors are divided by.
#pragma once

#include <cstdint>
#include <span>

#include "nibble/kernels/kernel.h"

namespace nibble {

// One step of a pass: products that run together, or attention.
struct OpWork {
  double int8_flops = 0, f32_flops = 0;  // by the arithmetic that they run in; a multiply-add is two
  double bytes = 0;                      // of weights, or of keys and values, as they lie in memory, each once

  double flops() const { return int8_flops + f32_flops; }
  OpWork& operator+=(const OpWork& other);
};

// A matrix times the vectors of `tokens` tokens. Four-bit floats on both sides count as float32, in which they are
// computed.
OpWork product_work(const WeightLayout& layout, ActivationKind activations, uint64_t tokens);

OpWork sum_of(std::span<const OpWork> steps);

}  // namespace nibble
