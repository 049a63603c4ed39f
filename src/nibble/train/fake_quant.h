// Fake quantization in a computation graph: forward, a weight becomes what it reads back as once it was packed, bit for
// bit (numerics/fake_quantize.h); backward, the gradient passes as if nothing had happened (straight through).
//
// Nothing is cut out of the gradient for weights that a format's range clips either. The scales follow the weights'
// own maximum at every step, so that only what a scale's own rounding pushed out is clipped, by at most half a step (by
// one where a rule trades the range's end for finer steps, as amax / 7.5 does); without a gradient such a weight could
// never come back.
//
// Weights are (…, N, K) float32, blocks along K: every (N, K) is a matrix of its own and has, in formats of two levels,
// its own second-level scale. Sizes must be ones that the format can pack (check_shape: groups must divide K); anything
// else, NaN and infinity are Errors with the numbers. Tensors of another device make the way to the CPU and back.
#pragma once

#include <torch/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "nibble/numerics/quantizer.h"

namespace nibble {

struct FakeQuant {
  Format format;
  NamedRule rule;  // none for formats without scales
  // As in the file that the weights will be written to (QuantizeOptions::second_level): its form changes bits.
  SecondLevel second_level = SecondLevel::kNone;
};

// By names as on the command line; an empty rule is the format's own. Error with the names that there are, for formats
// that cannot be written too: nobody could store what was trained.
FakeQuant fake_quant_named(std::string_view format, std::string_view rule = "");

// `name` is for messages.
torch::Tensor fake_quantize(const torch::Tensor& weight, const FakeQuant& how, std::string_view name = "");

// The same without a graph, into memory that is there: `out` has the weight's shape, both are contiguous, on the CPU
// and maybe the same.
void fake_quantize_into(const torch::Tensor& weight, const FakeQuant& how, torch::Tensor& out,
                        std::string_view name = "");

// Weights that are packed together, such as the gates and ups of experts: of each leading index, their matrices share
// one second-level scale, as `quantize` writes it. Leading sizes must agree; N and K need not.
std::vector<torch::Tensor> fake_quantize_together(const std::vector<torch::Tensor>& weights, const FakeQuant& how,
                                                  std::string_view name = "");

}  // namespace nibble
