// Lines over two logarithmic axes, with bands and a legend.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace nibble {

inline constexpr double kChartWidth = 440;  // of every chart; the page scales it to its column
// Where the lines lie.
inline constexpr double kPlotLeft = 58, kPlotRight = 428, kPlotTop = 26, kPlotBottom = 266;

struct ChartPoint {
  double x = 0, y = 0;       // positive; others are left out
  double low = 0, high = 0;  // the band at x; both 0: none
  std::string tip;
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;  // x ascending
};

struct LineChart {
  std::string id, title, description;
  std::string x_title, y_title;
  std::vector<ChartSeries> series = {};
  std::optional<ChartPoint> asked = {};  // ringed
  std::string asked_name = {};           // in the legend
  std::function<std::string(double)> x_label = {}, y_label = {};
};

// Empty if there is no point to draw.
std::string line_chart(const LineChart& chart);

}  // namespace nibble
