// Brute force for the tests of the codecs: the nearest of all values of a format, ties to the even code.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "nibble/base/rng.h"
#include "nibble/numerics/codec/bits.h"

namespace nibble {

// `values` ascends from 0, index = magnitude code. x beyond the last value gives the last one.
inline uint32_t nearest_even_code(double x, std::span<const double> values) {
  uint32_t best = 0;
  double best_distance = std::abs(values[0] - x);
  for (uint32_t code = 1; code < values.size(); ++code) {
    const double distance = std::abs(values[code] - x);
    if (distance < best_distance || (distance == best_distance && code % 2 == 0)) {
      best = code;
      best_distance = distance;
    }
  }
  return best;
}

inline float next_float(float x) { return std::nextafterf(x, INFINITY); }
inline float previous_float(float x) { return std::nextafterf(x, -INFINITY); }

// Every value, every midpoint of neighbours, and one ulp to both sides of each; then random magnitudes, log-uniform
// over [2^low, 2^high).
inline std::vector<float> interesting_magnitudes(std::span<const double> values, int low, int high, uint64_t seed) {
  std::vector<float> xs;
  for (size_t i = 0; i < values.size(); ++i) {
    std::vector<double> centres = {values[i]};
    if (i + 1 < values.size()) centres.push_back((values[i] + values[i + 1]) / 2);
    for (const double centre : centres) {
      const float x = static_cast<float>(centre);
      xs.push_back(x);
      xs.push_back(next_float(x));
      if (x > 0) xs.push_back(previous_float(x));
    }
  }
  for (uint64_t i = 0; i < 200000; ++i) {
    xs.push_back(static_cast<float>(std::exp2(low + (high - low) * random_uniform(seed, i))));
  }
  return xs;
}

}  // namespace nibble
