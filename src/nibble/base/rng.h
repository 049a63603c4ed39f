// Counter-based random numbers: the i-th value of stream `seed` is a pure function of (seed, i), so results do not
// depend on order or threads. The function is SplitMix64's finaliser over seed and counter.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace nibble {

constexpr uint64_t random_bits(uint64_t seed, uint64_t index) {
  uint64_t z = seed * 0xD1342543DE82EF95u + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Uniform in [0, 1), 53 bits.
constexpr double random_uniform(uint64_t seed, uint64_t index) {
  return static_cast<double>(random_bits(seed, index) >> 11) * 0x1p-53;
}

// Standard normal (Box-Muller, one value per index).
inline double random_normal(uint64_t seed, uint64_t index) {
  const double u = random_uniform(seed, 2 * index) + 0x1p-54;  // never 0
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * random_uniform(seed, 2 * index + 1));
}

}  // namespace nibble
