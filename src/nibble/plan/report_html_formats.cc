#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "nibble/base/strings.h"
#include "nibble/plan/report.h"
#include "nibble/plan/report_html_sections.h"
#include "nibble/report/chart/axis.h"
#include "nibble/report/chart/bar_chart.h"
#include "nibble/report/html_parts.h"

namespace nibble {
namespace {

double of(uint64_t number) { return static_cast<double>(number); }

std::string scales_of(const FormatRow& row) {
  return row.size.scale_bytes == 0 ? "–" : fmt::format("{:.4g} %", row.scales_percent());
}

// Class and meaning, from left to right; what is not in codes and scales is kept in wider types.
constexpr std::pair<std::string_view, std::string_view> kColours[] = {
    {"w1", "quantized weights"}, {"scales", "their scales"}, {"w4", "weights in wider types"}};

std::vector<BarPart> weight_parts(const FormatRow& row, double unit) {
  const FormatSize& size = row.size;
  const uint64_t coded = std::min(size.value_bytes + size.scale_bytes, size.weight_bytes);
  const uint64_t bytes[] = {size.value_bytes, size.scale_bytes, size.weight_bytes - coded};
  std::vector<BarPart> parts;
  for (size_t i = 0; i < std::size(bytes); ++i) {
    const auto& [css, name] = kColours[i];
    parts.push_back({std::string(name), of(bytes[i]) / unit, std::string(css),
                     fmt::format("{}, {}: {}", row.title, name, terabytes(bytes[i]))});
  }
  return parts;
}

// The key of those that occur.
std::string colours_of(const BarChart& chart) {
  std::vector<std::pair<std::string, std::string>> colours;
  for (const auto& [css, name] : kColours) {
    bool drawn = false;
    for (const ChartBar& bar : chart.bars) {
      for (const BarPart& part : bar.parts) drawn = drawn || (part.css == css && part.value > 0);
    }
    if (drawn) colours.emplace_back(css, name);
  }
  return html_key(colours);
}

std::string weights_chart(const Plan& plan) {
  uint64_t most = 0;
  for (const FormatRow& row : plan.rows) most = std::max(most, row.size.weight_bytes);
  const double limit = usable_bytes(plan.device, plan.request.reserve) * of(plan.gpus);
  const bool tera = std::max(of(most), limit) >= 1e12;
  const double unit = tera ? 1e12 : 1e9;
  BarChart chart{.id = "weights-by-format",
                 .title = "Bytes of the weights by format",
                 .limit = limit / unit,
                 .limit_name = fmt::format("room on {} GPU{}: {}", plan.gpus, plan.gpus == 1 ? "" : "s",
                                           terabytes(static_cast<uint64_t>(limit))),
                 .x_title = tera ? "TB" : "GB",
                 .x_label = tick_text};
  for (const FormatRow& row : plan.rows) {
    if (!row.refused.empty()) continue;
    const std::string bytes = terabytes(row.size.weight_bytes);
    chart.description += fmt::format("{}: {}, scales add {}. ", row.title, bytes, scales_of(row));
    const std::string scales =
        row.size.scale_bytes == 0 ? "" : fmt::format(", scales {}", terabytes(row.size.scale_bytes));
    chart.bars.push_back({row.title, bytes + scales, weight_parts(row, unit)});
  }
  return html_figure(bar_chart(chart),
                     "Hatched is what the planned GPUs have no room for beside the share that is left free.",
                     colours_of(chart));
}

// One number of each format as bars.
template <typename Value, typename Words>
std::string number_chart(const Plan& plan, BarChart chart, const char* css, const char* caption, Value value,
                         Words words) {
  for (const FormatRow& row : plan.rows) {
    if (!row.refused.empty()) continue;
    const std::string text = words(row);
    chart.description += fmt::format("{}: {}. ", row.title, text);
    chart.bars.push_back({row.title, text, {{"", value(row), css, row.title + ": " + text}}});
  }
  chart.x_label = tick_text;
  return html_figure(bar_chart(chart), caption);
}

std::string gpus_chart(const Plan& plan) {
  BarChart chart{.id = "gpus-by-format", .title = "Fewest GPUs that hold the weights, by format"};
  chart.limit = of(plan.gpus);
  chart.limit_name = fmt::format("planned: {}", plan.gpus);
  chart.x_title = "GPUs";
  return number_chart(
      plan, std::move(chart), "fill3",
      "The fewest GPUs whose memory holds the weights and the share that is left free.",
      [](const FormatRow& row) { return of(row.min_gpus); },
      [&](const FormatRow& row) {
        return fmt::format("{} ({} machine{} of {})", row.min_gpus, row.machines, row.machines == 1 ? "" : "s",
                           plan.request.gpus_per_machine);
      });
}

std::string floor_chart(const Plan& plan) {
  BarChart chart{.id = "floor-by-format",
                 .title = fmt::format("Least time of one token on {} GPUs, by format", plan.gpus)};
  chart.x_title = "ms";
  return number_chart(
      plan, std::move(chart), "fill4",
      "The least time of a token: its weights read once by all GPUs; no cache, no exchange.",
      [](const FormatRow& row) { return row.floor_seconds * 1e3; },
      [](const FormatRow& row) { return fmt::format("{:.3g} ms", row.floor_seconds * 1e3); });
}

std::string table_of(const Plan& plan) {
  HtmlTable table{.caption = "Formats; marked is the one of this page",
                  .head = {"format", "weights", "scales add", "GPUs at least",
                           fmt::format("machines of {}", plan.request.gpus_per_machine),
                           fmt::format("floor of a token on {}", plan.gpus), "fits"}};
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const FormatRow& row = plan.rows[i];
    if (!row.refused.empty()) continue;
    table.rows.push_back(
        {.cells = {row.title, terabytes(row.size.weight_bytes), scales_of(row), std::to_string(row.min_gpus),
                   std::to_string(row.machines), fmt::format("{:.2f} ms", row.floor_seconds * 1e3),
                   row.fits ? "✓\u00a0yes" : "✗\u00a0no"},
         .marked = i == plan.detail});
  }
  return html_table(table);
}

}  // namespace

std::string html_formats(const Plan& plan) {
  std::vector<std::string> refused;
  for (const FormatRow& row : plan.rows) {
    if (!row.refused.empty()) refused.push_back(fmt::format("{}: {}", row.format, row.refused));
  }
  std::string impossible;
  if (!refused.empty()) impossible = "<h3>Not possible</h3>\n" + html_list(refused);
  return html_section(
      "formats", "Formats side by side",
      table_of(plan) + html_beside(weights_chart(plan) + gpus_chart(plan) + floor_chart(plan)) + impossible);
}

}  // namespace nibble
