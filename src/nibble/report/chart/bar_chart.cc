#include "nibble/report/chart/bar_chart.h"

#include <algorithm>

#include "nibble/report/chart/axis.h"
#include "nibble/report/chart/line_chart.h"
#include "nibble/report/chart/svg.h"

namespace nibble {
namespace {

constexpr double kLabelHeight = 18, kGap = 10;

double sum_of(const ChartBar& bar) {
  double sum = 0;
  for (const BarPart& part : bar.parts) sum += part.value;
  return sum;
}

// The limit's name stands left of its line where there is no room on the right.
void draw_limit(const BarChart& chart, const ChartAxis& axis, double bottom, Svg* svg) {
  const double x = axis.place(chart.limit);
  svg->line({x, 18}, {x, bottom}, "limit");
  const bool left = x + text_width(chart.limit_name) > kChartWidth;
  svg->text({left ? std::min(x, kBarRight + 8) : x, 13}, left ? TextAnchor::kEnd : TextAnchor::kStart, "name",
            chart.limit_name);
}

void draw_bar(const BarChart& chart, const ChartBar& bar, const ChartAxis& axis, double top, Svg* svg) {
  svg->text({kBarLeft, top + 13}, TextAnchor::kStart, "label", bar.label);
  if (!bar.value.empty()) svg->text({kBarRight, top + 13}, TextAnchor::kEnd, "value", bar.value);
  const double y = top + kLabelHeight;
  double before = 0;
  for (const BarPart& part : bar.parts) {
    const double x = axis.place(before);
    before += part.value;
    const double width = axis.place(before) - x;
    if (width <= 0) continue;
    svg->rect({x, y}, width, chart.height, "part " + part.css, part.tip);
    if (chart.names_inside && text_width(part.name) + 8 < width)
      svg->text({x + width / 2, y + chart.height / 2 + 4}, TextAnchor::kMiddle, "inside", part.name);
  }
  if (chart.limit > 0 && before > chart.limit) {
    const double x = axis.place(chart.limit);
    svg->hatched({x, y}, axis.place(before) - x, chart.height, "over", "too much");
  }
}

}  // namespace

std::string bar_chart(const BarChart& chart) {
  double most = chart.limit;
  for (const ChartBar& bar : chart.bars) most = std::max(most, sum_of(bar));
  const ChartAxis axis = linear_axis(most, 6, kBarLeft, kBarRight);
  // Room for the limit's name in charts without one, too: those that stand side by side keep level.
  constexpr double kFirst = 22;
  const double each = kLabelHeight + chart.height + kGap;
  const double bottom = kFirst + each * static_cast<double>(chart.bars.size());
  Svg svg(chart.id, kChartWidth, chart.title, chart.description);
  for (const double tick : axis.ticks) {
    const double x = axis.place(tick);
    // Between the bars' labels the grid would only be noise: it stands at their feet.
    svg.line({x, bottom - 4}, {x, bottom + 2}, "axis");
    // Labels of the ends stay inside the picture.
    const std::string label = chart.x_label(tick);
    const double half = text_width(label) / 2;
    svg.text({std::clamp(x, half, kChartWidth - half), bottom + 16}, TextAnchor::kMiddle, "tick", label);
  }
  svg.line({kBarLeft, bottom - 4}, {kBarRight, bottom - 4}, "axis");
  for (size_t i = 0; i < chart.bars.size(); ++i)
    draw_bar(chart, chart.bars[i], axis, kFirst + each * static_cast<double>(i), &svg);
  if (chart.limit > 0) draw_limit(chart, axis, bottom - 4, &svg);
  svg.text({kBarRight, bottom + 33}, TextAnchor::kEnd, "name", chart.x_title);
  return svg.finish(bottom + 40);
}

}  // namespace nibble
