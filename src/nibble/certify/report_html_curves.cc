#include <fmt/format.h>

#include "nibble/base/strings.h"
#include "nibble/certify/report_html_sections.h"
#include "nibble/report/chart/axis.h"
#include "nibble/report/chart/line_chart.h"
#include "nibble/report/chart/step_chart.h"
#include "nibble/report/html_parts.h"

namespace nibble {
namespace {

StepSeries series_of(const std::string& name, const Curve& curve, double start) {
  StepSeries series{.name = name, .points = {}, .start = start};
  for (const CurvePoint& point : curve) {
    series.points.push_back({static_cast<double>(point.time), point.value, point.low, point.high,
                             fmt::format("{}: {:.1f} % after {} tokens", name, 100 * point.value, point.time)});
  }
  return series;
}

StepChart chart_of(const char* id, const char* title, const char* y_title) {
  return {.id = id,
          .title = title,
          .description = "Both axes are linear; bands hold 95 % of what resampling the prompts gives.",
          .x_title = "tokens of the answer",
          .y_title = y_title};
}

std::string incidence_figure(const Certificate& certificate) {
  StepChart chart = chart_of("incidence", "Answers that have left the reference", "have left");
  for (const CandidateCertificate& c : certificate.candidates)
    chart.series.push_back(series_of(c.name, c.incidence, 0));
  return html_figure(
      step_chart(chart),
      "Share of answers that have left the reference. Answers that ended with it can leave no more and count as "
      "having stayed (Aalen–Johansen).");
}

std::string survival_figure(const Certificate& certificate) {
  StepChart chart = chart_of("survival", "Answers that still agree, if answers did not end", "still agree");
  for (const CandidateCertificate& c : certificate.candidates) chart.series.push_back(series_of(c.name, c.survival, 1));
  return html_figure(step_chart(chart),
                     "If answers did not end: share that would still agree after so many tokens (Kaplan–Meier, ends "
                     "censored). Where it crosses one half is the measured horizon.");
}

std::string at_end(const Curve& survival) {
  return survival.empty() ? "–" : fmt::format("{:.1f} %", 100 * survival.back().value);
}

std::string length_table(const Certificate& certificate) {
  HtmlTable table{.caption = "Agreement at the end, by length of the reference's answer", .head = {"tokens", "chains"}};
  for (const CandidateCertificate& c : certificate.candidates) table.head.push_back(c.name);
  if (certificate.candidates.empty()) return "";
  const std::vector<LengthClass>& classes = certificate.candidates.front().by_length;
  for (size_t k = 0; k < classes.size(); ++k) {
    HtmlRow row{
        .cells = {classes[k].shortest == classes[k].longest
                      ? with_commas(classes[k].shortest)
                      : fmt::format("{} to {}", with_commas(classes[k].shortest), with_commas(classes[k].longest)),
                  std::to_string(classes[k].chains)}};
    for (const CandidateCertificate& c : certificate.candidates) row.cells.push_back(at_end(c.by_length[k].survival));
    table.rows.push_back(row);
  }
  return html_table(table);
}

}  // namespace

std::string html_curves(const Certificate& certificate) {
  return html_section(
      "curves", "How long answers stay the same",
      html_beside(incidence_figure(certificate) + survival_figure(certificate)) + length_table(certificate));
}

std::string html_hazard(const Certificate& certificate) {
  LineChart chart{.id = "hazard",
                  .title = "Hazard of leaving, among answers still running",
                  .description = "Both axes are logarithmic.",
                  .x_title = "position in the answer",
                  .y_title = "leave at each choice",
                  .x_label = tick_text,
                  .y_label = tick_text};
  for (const CandidateCertificate& c : certificate.candidates) {
    ChartSeries series{.name = c.name, .points = {}};
    for (const HazardBin& bin : c.hazard) {
      const double middle = static_cast<double>(bin.from + bin.to + 1) / 2;
      series.points.push_back({middle, bin.value, bin.low, bin.high,
                               fmt::format("{}: {} of {} choices at {} to {}", c.name, bin.divergences,
                                           with_commas(bin.choices), bin.from, bin.to - 1)});
    }
    chart.series.push_back(std::move(series));
  }
  return html_section(
      "hazard", "Where they leave",
      html_figure(line_chart(chart),
                  "A level line would mean that every position is as dangerous as any other; then, and only "
                  "then, the horizon that the rate of flips implies is the right one."));
}

}  // namespace nibble
