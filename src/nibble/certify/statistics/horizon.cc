#include "nibble/certify/statistics/horizon.h"

#include <algorithm>
#include <cmath>

#include "nibble/base/error.h"

namespace nibble {

ImpliedHorizon implied_horizon(uint64_t flips, uint64_t tokens) {
  if (tokens == 0) throw Error("a horizon needs scored tokens, and there are none").way_out("give longer chains");
  if (flips > tokens) {
    throw Error("more flips than scored tokens")
        .value("flips", flips)
        .value("tokens", tokens)
        .way_out("count both over the same tokens");
  }
  const auto all = static_cast<double>(tokens);
  if (flips == 0) return {all * std::log(0.5) / std::log(0.05), true};
  return {std::log(0.5) / std::log1p(-static_cast<double>(flips) / all), false};
}

std::optional<uint64_t> measured_horizon(const Curve& survival) {
  const auto point =
      std::find_if(survival.begin(), survival.end(), [](const CurvePoint& one) { return one.value <= 0.5 + 1e-12; });
  return point == survival.end() ? std::nullopt : std::optional(point->time);
}

}  // namespace nibble
