// Lying bars from one zero, each in parts, with the limit that some of them exceed.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace nibble {

inline constexpr double kBarLeft = 6, kBarRight = 428;  // places of 0 and of the axis' end

struct BarPart {
  std::string name;
  double value = 0;
  std::string css;  // class of its colour
  std::string tip;
};

struct ChartBar {
  std::string label, value;  // above the bar, left and right
  std::vector<BarPart> parts;
};

struct BarChart {
  std::string id, title, description = {};
  std::vector<ChartBar> bars = {};
  double height = 14;           // of one bar
  double limit = 0;             // a line across all bars; 0: none. What lies beyond it is hatched
  std::string limit_name = {};  // at the line
  bool names_inside = false;    // of the parts, where they fit
  std::string x_title = {};
  std::function<std::string(double)> x_label = {};
};

std::string bar_chart(const BarChart& chart);

}  // namespace nibble
