// Which kernels multiply a model's matrices, in one line a run: nobody should have to guess which instruction set is
// used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/engine/engine.h"

namespace nibble {

// Matrices of one kind of codes and activations, which one kernel multiplies.
struct KernelUse {
  std::string_view kernel, weights, activations;  // "avx512-vnni", "e2m1", "int8"
  uint64_t matrices = 0, bytes = 0;               // resident
};

// Most bytes first. The embedding is looked up and not multiplied, unless it is the head too.
std::vector<KernelUse> kernel_uses(const Engine& engine);

// "avx512-vnni: e2m1 by int8, 92 % of the weights; avx512: bf16 by f32, 8 %; attention: avx512"
std::string kernel_line(const std::vector<KernelUse>& uses);

}  // namespace nibble
