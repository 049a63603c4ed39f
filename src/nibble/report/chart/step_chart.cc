#include "nibble/report/chart/step_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "nibble/report/chart/axis.h"
#include "nibble/report/chart/svg.h"

namespace nibble {
namespace {

constexpr size_t kMostIntervals = 8;
constexpr double kTopRoom = 8;  // a curve at 1 does not touch the title

struct Axes {
  ChartAxis x, y;
  Spot spot(double at_x, double at_y) const { return {x.place(at_x), y.place(std::clamp(at_y, 0.0, 1.0))}; }
};

// Corners of the steps of one column of the points.
std::vector<Spot> corners(const StepSeries& series, const Axes& axes, double ChartPoint::* value) {
  std::vector<Spot> spots = {axes.spot(0, series.start)};
  double last = series.start;
  for (const ChartPoint& point : series.points) {
    spots.push_back(axes.spot(point.x, last));
    last = point.*value;
    spots.push_back(axes.spot(point.x, last));
  }
  return spots;
}

void draw_axes(const StepChart& chart, const Axes& axes, Svg* svg) {
  for (const double tick : axes.y.ticks) {
    const double y = axes.y.place(tick);
    svg->line({kPlotLeft, y}, {kPlotRight, y}, "grid");
    svg->text({kPlotLeft - 6, y + 4}, TextAnchor::kEnd, "tick", fmt::format("{:.0f} %", 100 * tick));
  }
  for (const double tick : axes.x.ticks) {
    const double x = axes.x.place(tick);
    const std::string label = tick_text(tick);
    svg->line({x, kPlotTop + kTopRoom}, {x, kPlotBottom + 4}, "grid");
    svg->text({std::min(x, kChartWidth - text_width(label) / 2), kPlotBottom + 18}, TextAnchor::kMiddle, "tick", label);
  }
  svg->line({kPlotLeft, kPlotBottom}, {kPlotRight, kPlotBottom}, "axis");
  svg->text({2, 13}, TextAnchor::kStart, "name", chart.y_title);
  svg->text({kPlotRight, kPlotBottom + 36}, TextAnchor::kEnd, "name", chart.x_title);
}

void draw_band(const StepSeries& series, size_t number, const Axes& axes, Svg* svg) {
  std::vector<Spot> outline = corners(series, axes, &ChartPoint::low);
  const std::vector<Spot> upper = corners(series, axes, &ChartPoint::high);
  outline.insert(outline.end(), upper.rbegin(), upper.rend());
  svg->polygon(outline, fmt::format("band fill{}", number % 5 + 1));
}

void draw_line(const StepSeries& series, size_t number, const Axes& axes, Svg* svg) {
  svg->polyline(corners(series, axes, &ChartPoint::y), fmt::format("line stroke{}", number % 5 + 1));
  // One mark a curve is enough to tell it from others without colour: where it has come half way.
  const ChartPoint& middle = series.points[series.points.size() / 2];
  svg->marker(number, axes.spot(middle.x, middle.y), fmt::format("fill{}", number % 5 + 1), middle.tip);
}

double draw_legend(const StepChart& chart, Svg* svg) {
  double x = 8, y = kPlotBottom + 56;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const double width = 20 + text_width(chart.series[i].name) + 14;
    if (x > 8 && x + width > kChartWidth) {
      x = 8;
      y += 19;
    }
    const std::string number = std::to_string(i % 5 + 1);
    svg->line({x - 4, y}, {x + 12, y}, "line stroke" + number);
    svg->marker(i, {x + 4, y}, "fill" + number);
    svg->text({x + 18, y + 4}, TextAnchor::kStart, "legend", chart.series[i].name);
    x += width;
  }
  return y + 12;
}

}  // namespace

std::string step_chart(const StepChart& chart) {
  double most = 0;
  for (const StepSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) most = std::max(most, point.x);
  }
  if (most <= 0) return "";
  const Axes axes{linear_axis(most, kMostIntervals, kPlotLeft, kPlotRight - 8),
                  linear_axis(1, 5, kPlotBottom, kPlotTop + kTopRoom)};
  Svg svg(chart.id, kChartWidth, chart.title, chart.description);
  draw_axes(chart, axes, &svg);
  for (size_t i = 0; i < chart.series.size(); ++i) {
    if (!chart.series[i].points.empty()) draw_band(chart.series[i], i, axes, &svg);
  }
  for (size_t i = 0; i < chart.series.size(); ++i) {
    if (!chart.series[i].points.empty()) draw_line(chart.series[i], i, axes, &svg);
  }
  return svg.finish(draw_legend(chart, &svg));
}

}  // namespace nibble
