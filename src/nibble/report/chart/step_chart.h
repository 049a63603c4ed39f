// Curves that jump: shares of 0 to 1 over counts from 0 on, both axes linear, with bands and a legend. A value holds
// from its point to the next one; the last holds to the axis' end only if the curve says so.
#pragma once

#include <string>
#include <vector>

#include "nibble/report/chart/line_chart.h"

namespace nibble {

struct StepSeries {
  std::string name;
  std::vector<ChartPoint> points;  // x ascending; y, low and high from 0 to 1
  double start = 0;                // value before the first point
};

struct StepChart {
  std::string id, title, description;
  std::string x_title, y_title;
  std::vector<StepSeries> series = {};
};

// Empty if there is no point to draw.
std::string step_chart(const StepChart& chart);

}  // namespace nibble
