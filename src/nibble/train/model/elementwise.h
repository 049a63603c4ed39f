// What lies between the products of a decoder, each with its own gradient: the framework's ready operations would keep
// several copies of every activation and pass over memory a dozen times.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace nibble {

// x / sqrt(mean(x²) + eps) · weight over the last dimension. x (…, K), weight (K).
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double eps);

// Rotates the pairs (i, i + D/2) of heads (B, T, heads, D) by the angles of their positions: cos and sin (T, D/2).
torch::Tensor rotate(const torch::Tensor& x, const torch::Tensor& cos, const torch::Tensor& sin);

// Rows of gate, then of up: x (R, 2I) to (R, I). Plain: silu(gate) · up. Clamped (gpt-oss): gate at most `limit`, up
// within ±limit, gate · sigmoid(alpha · gate) · (up + 1).
struct SwigluSettings {
  double limit = 0;  // 0: plain
  double alpha = 1;
};
torch::Tensor swiglu(const torch::Tensor& x, const SwigluSettings& settings);

}  // namespace nibble
