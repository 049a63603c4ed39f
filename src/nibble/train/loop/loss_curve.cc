#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nibble/base/strings.h"
#include "nibble/report/chart/axis.h"
#include "nibble/report/chart/line_chart.h"
#include "nibble/train/loop/train_log.h"

namespace nibble {
namespace {

constexpr double kMostPoints = 64;

// The classes that a line chart uses, for a file that no page surrounds.
constexpr std::string_view kStyle = R"(<style>
text{font:11px system-ui,"Liberation Sans",sans-serif;fill:#1a2129}.tick,.legend,.name{fill:#55606c}
.grid{stroke:#dde2e8}.axis{stroke:#55606c}.line{fill:none;stroke-width:2}.band{opacity:.2}
.fill1{fill:#1f5fa8}.stroke1{stroke:#1f5fa8}
</style>
)";

// Steps first … last become one point: their mean, and their range as the band.
ChartPoint point_of(const std::vector<TrainLog::Point>& losses, size_t first, size_t last) {
  ChartPoint point;
  double low = losses[first].loss, high = low;
  for (size_t i = first; i < last; ++i) {
    point.y += losses[i].loss / static_cast<double>(last - first);
    low = std::min(low, losses[i].loss);
    high = std::max(high, losses[i].loss);
  }
  point.x = static_cast<double>(losses[last - 1].step + 1);
  if (last - first > 1) {
    point.low = low;
    point.high = high;
  }
  point.tip = fmt::format("step {}: {:.4g}", with_commas(losses[last - 1].step + 1), point.y);
  return point;
}

}  // namespace

std::string loss_curve(const std::string& name, const std::vector<TrainLog::Point>& losses) {
  LineChart chart;
  chart.id = "loss";
  chart.title = "Loss of " + name;
  chart.description = "Training loss over steps, both axes logarithmic.";
  chart.x_title = "step";
  chart.y_title = "loss, nats";
  chart.x_label = tick_text;
  chart.y_label = [](double value) { return fmt::format("{:g}", value); };
  ChartSeries series{name, {}};
  const double growth = std::pow(static_cast<double>(std::max<size_t>(losses.size(), 2)), 1 / kMostPoints);
  for (size_t first = 0; first < losses.size();) {
    const auto wide = static_cast<size_t>(static_cast<double>(first + 1) * growth);
    const size_t last = std::clamp(wide, first + 1, losses.size());
    series.points.push_back(point_of(losses, first, last));
    first = last;
  }
  chart.series.push_back(std::move(series));
  std::string svg = line_chart(chart);
  const size_t begin = svg.find("<svg"), end = svg.find('>', begin);
  if (begin == std::string::npos || end == std::string::npos) return "";
  const bool named = svg.substr(begin, end - begin).find("xmlns") != std::string::npos;
  svg.insert(end + 1, "\n" + std::string(kStyle));
  if (!named) svg.insert(begin + 4, " xmlns=\"http://www.w3.org/2000/svg\"");
  return svg;
}

}  // namespace nibble
