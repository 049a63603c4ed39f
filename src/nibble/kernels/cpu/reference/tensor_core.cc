#include "nibble/kernels/cpu/reference/tensor_core.h"

#include <algorithm>
#include <cmath>

namespace nibble {
namespace {

constexpr int kFractionBits = 35;
constexpr int kZeroExponent = -139;  // of a term that is zero
constexpr int kFloatSubnormal = -126;

// x = significand · 2^exponent, 1 <= |significand| < 2 but for numbers below the smallest normal one.
struct Scaled {
  double significand = 0;
  int exponent = 0;
};

Scaled normalized(double x, int smallest) {
  if (x == 0) return {0, smallest};
  int exponent = 0;
  double significand = 2 * std::frexp(x, &exponent);
  --exponent;
  if (exponent < smallest) {
    significand = std::ldexp(significand, exponent - smallest);
    exponent = smallest;
  }
  return {significand, exponent};
}

float toward_zero(double x) {
  const auto nearest = static_cast<float>(x);
  // Beyond float32's range the model has infinity.
  const bool beyond = std::abs(x) >= 0x1p128;
  return !beyond && std::abs(static_cast<double>(nearest)) > std::abs(x) ? std::nextafter(nearest, 0.0F) : nearest;
}

}  // namespace

float tensor_core_step(const TensorCoreGroup* groups, float accumulator) {
  Scaled terms[kTensorCoreGroups + 1];
  for (uint64_t g = 0; g < kTensorCoreGroups; ++g) {
    const TensorCoreGroup& group = groups[g];
    const Scaled a = normalized(static_cast<double>(group.weight_scale), group.scale_exponent);
    const Scaled b = normalized(static_cast<double>(group.activation_scale), group.scale_exponent);
    const double significand = a.significand * b.significand;
    terms[g] = {group.sum * significand, a.exponent + b.exponent};
    if (group.all_zero || significand == 0) terms[g].exponent = kZeroExponent;
  }
  terms[kTensorCoreGroups] = normalized(static_cast<double>(accumulator), kFloatSubnormal);
  if (accumulator == 0) terms[kTensorCoreGroups].exponent = kZeroExponent;
  int largest = terms[0].exponent;
  for (const Scaled& term : terms) largest = std::max(largest, term.exponent);
  double sum = 0;
  for (const Scaled& term : terms) {
    sum += std::trunc(std::ldexp(term.significand, term.exponent - largest + kFractionBits));
  }
  return toward_zero(std::ldexp(sum, largest - kFractionBits)) + 0.0F;
}

}  // namespace nibble
