// Products and sums of untrusted 64-bit sizes. `nullopt` on overflow: the caller words the error, since only it knows
// the file and the tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace nibble {

constexpr std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

constexpr std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// Product over all dimensions; 1 for rank 0. A zero dimension makes 0 only if the product of the others fits, as in the
// reference reader of safetensors, which multiplies in order and refuses at the first overflow.
constexpr std::optional<uint64_t> checked_product(std::span<const uint64_t> dims) {
  uint64_t product = 1;
  for (const uint64_t dim : dims) {
    const auto next = checked_mul(product, dim);
    if (!next) return std::nullopt;
    product = *next;
  }
  return product;
}

constexpr uint64_t ceil_div(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace nibble
