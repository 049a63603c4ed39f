// The curves of chain ends from their definitions: every chain looked at for every time, no sorting, no running state.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "nibble/base/rng.h"
#include "nibble/certify/statistics/chain_end.h"

namespace nibble::by_definition {

inline uint64_t last_time(std::span<const ChainEnd> ends) {
  uint64_t last = 0;
  for (const ChainEnd& end : ends) last = std::max(last, end.time);
  return last;
}

struct Counts {
  double at_risk = 0, diverged = 0, ended = 0;
};
inline Counts counts(std::span<const ChainEnd> ends, uint64_t time) {
  Counts result;
  for (const ChainEnd& end : ends) {
    if (end.time >= time) ++result.at_risk;
    if (end.time == time && end.kind == ChainEndKind::kDiverged) ++result.diverged;
    if (end.time == time && end.kind == ChainEndKind::kEnded) ++result.ended;
  }
  return result;
}

inline double incidence(std::span<const ChainEnd> ends, uint64_t time) {
  double sum = 0, running = 1;
  for (uint64_t s = 1; s <= std::min(time, last_time(ends)); ++s) {
    const Counts at = counts(ends, s);
    sum += running * at.diverged / at.at_risk;
    running *= 1 - (at.diverged + at.ended) / at.at_risk;
  }
  return sum;
}

inline double survival(std::span<const ChainEnd> ends, uint64_t time) {
  double product = 1;
  for (uint64_t s = 1; s <= std::min(time, last_time(ends)); ++s) {
    const Counts at = counts(ends, s);
    product *= 1 - at.diverged / at.at_risk;
  }
  return product;
}

// Divergences over choices at the positions [from, to); NaN without choices.
inline double hazard(std::span<const ChainEnd> ends, uint64_t from, uint64_t to) {
  double choices = 0, divergences = 0;
  for (uint64_t position = from; position < to; ++position) {
    const Counts at = counts(ends, position + 1);
    choices += at.at_risk;
    divergences += at.diverged;
  }
  return divergences / choices;
}

// Each chain as often as its cluster's weight says; clusters are numbers.
inline std::vector<ChainEnd> drawn(std::span<const ChainEnd> ends, std::span<const uint32_t> weights) {
  std::vector<ChainEnd> result;
  for (const ChainEnd& end : ends) result.insert(result.end(), weights[end.cluster], end);
  return result;
}

// `value` at percent 2.5 or 97.5 of the sorted numbers, in between linearly.
inline double percentile(std::vector<double> values, double percent) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  std::sort(values.begin(), values.end());
  const double place = percent / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (place - static_cast<double>(below));
}

// Random ends at times 1 … last, with clusters 0 … clusters - 1 in order of appearance.
inline std::vector<ChainEnd> random_ends(uint64_t seed, uint64_t chains, uint64_t clusters, uint64_t last) {
  std::vector<ChainEnd> ends;
  for (uint64_t i = 0; i < chains; ++i) {
    const uint64_t bits = random_bits(seed, i);
    ends.push_back({1 + bits % last, static_cast<ChainEndKind>((bits >> 32) % 3), i % clusters});
  }
  return ends;
}

}  // namespace nibble::by_definition
