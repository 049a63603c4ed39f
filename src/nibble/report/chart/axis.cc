#include "nibble/report/chart/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nibble/base/strings.h"

namespace nibble {
namespace {

constexpr double kMantissas[] = {1, 2, 5};

double power_of_ten(int exponent) {
  // Division keeps 0.1 and the like as the nearest double, which pow() need not.
  return exponent >= 0 ? std::pow(10.0, exponent) : 1 / std::pow(10.0, -exponent);
}

int decade(double value) { return static_cast<int>(std::floor(std::log10(value))); }

// So that 0.1 + 0.2 still ends at 0.3.
constexpr double kSlack = 1e-9;

std::vector<double> every_nth(const std::vector<double>& values, size_t most) {
  std::vector<double> kept;
  const size_t n = (values.size() + most - 1) / most;
  for (size_t i = 0; i < values.size(); i += n) kept.push_back(values[i]);
  return kept;
}

}  // namespace

double ChartAxis::place(double value) const {
  if (!(high > low)) return (from + to) / 2;
  value = std::clamp(value, low, high);
  const double share = log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return from + share * (to - from);
}

ChartAxis linear_axis(double most, size_t intervals, double from, double to) {
  ChartAxis axis;
  axis.from = from;
  axis.to = to;
  if (!(most > 0) || !std::isfinite(most)) most = 1;
  const double least_step = most / static_cast<double>(intervals);
  const int exponent = decade(least_step);
  double step = power_of_ten(exponent + 1);
  for (const double mantissa : {5.0, 2.0, 1.0}) {
    const double candidate = mantissa * power_of_ten(exponent);
    if (candidate * (1 + kSlack) >= least_step) step = candidate;
  }
  const auto count = static_cast<size_t>(std::ceil(most / step * (1 - kSlack)));
  for (size_t i = 0; i <= count; ++i) axis.ticks.push_back(static_cast<double>(i) * step);
  axis.high = axis.ticks.back();
  return axis;
}

ChartAxis log_axis(double low, double high, size_t most_ticks, double from, double to) {
  ChartAxis axis{.log = true, .low = low, .high = high, .from = from, .to = to, .ticks = {}};
  std::vector<double> all;
  for (int exponent = decade(low) - 1; exponent <= decade(high) + 1; ++exponent) {
    for (const double mantissa : kMantissas) all.push_back(mantissa * power_of_ten(exponent));
  }
  // One tick at or below, one at or above, and never the same one.
  for (const double tick : all) {
    if (tick <= low * (1 + kSlack)) axis.low = tick;
  }
  for (const double tick : all) {
    axis.high = tick;
    if (tick >= high * (1 - kSlack) && tick > axis.low) break;
  }
  std::vector<double> tens;
  for (const double tick : all) {
    if (tick < axis.low || tick > axis.high) continue;
    axis.ticks.push_back(tick);
    if (std::abs(tick / power_of_ten(decade(tick * (1 + kSlack))) - 1) < kSlack) tens.push_back(tick);
  }
  if (axis.ticks.size() > most_ticks && !tens.empty()) axis.ticks = every_nth(tens, most_ticks);
  return axis;
}

ChartAxis doubling_axis(double low, double high, size_t most_ticks, double from, double to) {
  ChartAxis axis{.log = true, .low = low, .high = high, .from = from, .to = to, .ticks = {}};
  for (int power = static_cast<int>(std::ceil(std::log2(low))); std::exp2(power) <= high; ++power) {
    axis.ticks.push_back(std::exp2(power));
  }
  if (axis.ticks.size() > most_ticks) axis.ticks = every_nth(axis.ticks, most_ticks);
  return axis;
}

std::string tick_text(double value) {
  const bool whole = value >= 10000 && value < 1e15 && value == std::floor(value);
  return whole ? with_commas(static_cast<uint64_t>(value)) : fmt::format("{:.6g}", value);
}

}  // namespace nibble
