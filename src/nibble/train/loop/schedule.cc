#include "nibble/train/loop/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace nibble {
namespace {

constexpr double kFirst = 25, kLast = 25 * 1e4;  // parts of the highest rate

// From `from` to `to` along half a cosine, `share` of the way.
double between(double from, double to, double share) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * share));
}

}  // namespace

double learning_rate(const OptimizerConfig& optimizer, uint64_t step, uint64_t steps) {
  const double most = optimizer.learning_rate;
  if (optimizer.schedule == ScheduleKind::kConstant || steps < 2) return most;
  const double at = static_cast<double>(step), end = static_cast<double>(steps) - 1;
  const double top = std::max(optimizer.warmup * static_cast<double>(steps) - 1, 0.0);
  if (at <= top && top > 0) return between(most / kFirst, most, at / top);
  return between(most, most / kLast, end > top ? (at - top) / (end - top) : 1);
}

}  // namespace nibble
