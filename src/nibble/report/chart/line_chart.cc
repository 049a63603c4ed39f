#include "nibble/report/chart/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nibble/report/chart/axis.h"
#include "nibble/report/chart/svg.h"

namespace nibble {
namespace {

bool drawable(double value) { return value > 0 && std::isfinite(value); }

bool drawable(const ChartPoint& point) { return drawable(point.x) && drawable(point.y); }

struct Extent {
  double low = INFINITY, high = 0;
  void add(double value) {
    if (!drawable(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

struct Axes {
  ChartAxis x, y;
  Spot spot(double at_x, double at_y) const { return {x.place(at_x), y.place(at_y)}; }
};

std::optional<Axes> axes_of(const LineChart& chart) {
  Extent x;
  Extent y;
  const auto add = [&](const ChartPoint& point) {
    if (!drawable(point)) return;
    x.add(point.x);
    for (const double value : {point.y, point.low, point.high}) y.add(value);
  };
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) add(point);
  }
  if (chart.asked) add(*chart.asked);
  if (x.high == 0) return std::nullopt;
  // As many labels as stand beside each other.
  const auto labels = static_cast<size_t>((kPlotRight - kPlotLeft) / text_width(chart.x_label(x.high)));
  return Axes{doubling_axis(x.low, x.high, std::clamp<size_t>(labels, 2, 12), kPlotLeft + 8, kPlotRight - 8),
              log_axis(y.low, y.high, 9, kPlotBottom, kPlotTop)};
}

void draw_axes(const LineChart& chart, const Axes& axes, Svg* svg) {
  for (const double tick : axes.y.ticks) {
    const double y = axes.y.place(tick);
    svg->line({kPlotLeft, y}, {kPlotRight, y}, "grid");
    svg->text({kPlotLeft - 6, y + 4}, TextAnchor::kEnd, "tick", chart.y_label(tick));
  }
  for (const double tick : axes.x.ticks) {
    const double x = axes.x.place(tick);
    svg->line({x, kPlotTop}, {x, kPlotBottom + 4}, "grid");
    const std::string label = chart.x_label(tick);
    svg->text({std::min(x, kChartWidth - text_width(label) / 2), kPlotBottom + 18}, TextAnchor::kMiddle, "tick", label);
  }
  svg->line({kPlotLeft, kPlotBottom}, {kPlotRight, kPlotBottom}, "axis");
  svg->text({2, 13}, TextAnchor::kStart, "name", chart.y_title);
  svg->text({kPlotRight, kPlotBottom + 36}, TextAnchor::kEnd, "name", chart.x_title);
}

// All bands lie below all lines.
void draw_band(const ChartSeries& series, size_t number, const Axes& axes, Svg* svg) {
  std::vector<Spot> outline;
  for (const ChartPoint& point : series.points) {
    if (drawable(point) && drawable(point.low)) outline.push_back(axes.spot(point.x, point.low));
  }
  for (size_t i = series.points.size(); i-- > 0;) {
    const ChartPoint& point = series.points[i];
    if (drawable(point) && drawable(point.low)) outline.push_back(axes.spot(point.x, point.high));
  }
  if (outline.size() > 2) svg->polygon(outline, fmt::format("band fill{}", number % 5 + 1));
}

void draw_line(const ChartSeries& series, size_t number, const Axes& axes, Svg* svg) {
  std::vector<Spot> spots;
  for (const ChartPoint& point : series.points) {
    if (drawable(point)) spots.push_back(axes.spot(point.x, point.y));
  }
  if (spots.size() > 1) svg->polyline(spots, fmt::format("line stroke{}", number % 5 + 1));
  for (const ChartPoint& point : series.points) {
    if (drawable(point))
      svg->marker(number, axes.spot(point.x, point.y), fmt::format("fill{}", number % 5 + 1), point.tip);
  }
}

// Entries side by side while they fit; returns the height below the last.
double draw_legend(const LineChart& chart, Svg* svg) {
  double x = 8;
  double y = kPlotBottom + 56;
  const auto next = [&](std::string_view name) {
    const double width = 20 + text_width(name) + 14;
    if (x > 8 && x + width > kChartWidth) {
      x = 8;
      y += 19;
    }
    const Spot at{x, y};
    svg->text({x + 18, y + 4}, TextAnchor::kStart, "legend", name);
    x += width;
    return at;
  };
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Spot at = next(chart.series[i].name);
    const std::string number = std::to_string(i % 5 + 1);
    svg->line({at.x - 4, at.y}, {at.x + 12, at.y}, "line stroke" + number);
    svg->marker(i, {at.x + 4, at.y}, "fill" + number);
  }
  if (chart.asked) {
    x = 8;
    y += chart.series.empty() ? 0 : 19;
    const Spot at = next(chart.asked_name);
    svg->ring({at.x + 4, at.y}, 6, "ring");
  }
  return y + 12;
}

}  // namespace

std::string line_chart(const LineChart& chart) {
  const std::optional<Axes> axes = axes_of(chart);
  if (!axes) return "";
  Svg svg(chart.id, kChartWidth, chart.title, chart.description);
  draw_axes(chart, *axes, &svg);
  for (size_t i = 0; i < chart.series.size(); ++i) draw_band(chart.series[i], i, *axes, &svg);
  for (size_t i = 0; i < chart.series.size(); ++i) draw_line(chart.series[i], i, *axes, &svg);
  if (chart.asked && drawable(*chart.asked)) svg.ring(axes->spot(chart.asked->x, chart.asked->y), 7, "ring");
  return svg.finish(draw_legend(chart, &svg));
}

}  // namespace nibble
