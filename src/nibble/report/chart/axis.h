// From values to places along an axis, with ticks at round numbers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace nibble {

struct ChartAxis {
  bool log = false;
  double low = 0, high = 1;   // values at the ends
  double from = 0, to = 1;    // places of the ends
  std::vector<double> ticks;  // values, ascending
  // Values beyond the ends lie on them.
  double place(double value) const;
};

// From 0 to the first tick at or above `most`: steps of 1, 2 or 5 times a power of ten, at most `intervals` of them.
ChartAxis linear_axis(double most, size_t intervals, double from, double to);

// Positive values; the ends are rounded outwards to 1, 2 or 5 times a power of ten. Ticks at all of these, or at the
// powers of ten if they would be more than `most_ticks`, or at every n-th of those.
ChartAxis log_axis(double low, double high, size_t most_ticks, double from, double to);

// Positive values; the ends are values as they come, ticks are powers of two between them, or every n-th of those.
ChartAxis doubling_axis(double low, double high, size_t most_ticks, double from, double to);

// "0.5", "100", "131,072".
std::string tick_text(double value);

}  // namespace nibble
