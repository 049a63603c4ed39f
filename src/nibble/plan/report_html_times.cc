#include <fmt/format.h>

#include <algorithm>

#include "nibble/base/strings.h"
#include "nibble/plan/report.h"
#include "nibble/plan/report_html_sections.h"
#include "nibble/report/chart/axis.h"
#include "nibble/report/chart/line_chart.h"
#include "nibble/report/html_parts.h"

namespace nibble {
namespace {

double of(uint64_t number) { return static_cast<double>(number); }

std::string in_words(const Prediction& prediction) {
  if (prediction.high <= 0) return "at least " + human_seconds(prediction.floor);
  return fmt::format("at least {}; {} to {} by measured ceilings", human_seconds(prediction.floor),
                     human_seconds(prediction.low), human_seconds(prediction.high));
}

std::string band_words(const Plan& plan) {
  return plan.device.measured_read
             ? " Lines are floors by the vendor's figures, the shaded bands what ceilings measured on this device "
               "leave."
             : " Lines are floors by the vendor's figures; no measured ceilings of this device are known.";
}

ChartPoint point_of(const Plan& plan, double x, const StepTime& time, const std::string& tip) {
  const Prediction prediction = predict(time, plan.device, *plan.scheme);
  return {x, prediction.floor * 1e3, prediction.low * 1e3, prediction.high * 1e3, tip + ": " + in_words(prediction)};
}

std::vector<uint64_t> contexts_of(const Plan& plan) {
  std::vector<uint64_t> contexts;
  for (const DecodePoint& point : plan.decode) {
    if (std::find(contexts.begin(), contexts.end(), point.context) == contexts.end()) contexts.push_back(point.context);
  }
  return contexts;
}

std::string latency_chart(const Plan& plan) {
  const PlanRequest& request = plan.request;
  LineChart chart{.id = "latency-by-batch",
                  .title = "Least time of a decoding step against the batch",
                  .description = "Both axes are logarithmic. ",
                  .x_title = "sequences a step",
                  .y_title = "ms a step",
                  .x_label = tick_text,
                  .y_label = tick_text};
  for (const uint64_t context : contexts_of(plan)) {
    ChartSeries series{with_commas(context) + " tokens", {}};
    for (const DecodePoint& point : plan.decode) {
      if (point.context == context)
        series.points.push_back(
            point_of(plan, of(point.batch), point.step, fmt::format("{} × {}", point.batch, series.name)));
    }
    chart.description +=
        fmt::format("{}: {} alone, {} for {} sequences. ", series.name, human_seconds(series.points.front().y / 1e3),
                    human_seconds(series.points.back().y / 1e3), series.points.back().x);
    chart.series.push_back(std::move(series));
  }
  if (plan.step) {
    chart.asked = point_of(plan, of(request.concurrency), plan.chosen->step, "asked for");
    chart.asked_name =
        fmt::format("asked for: {} × {} tokens", with_commas(request.concurrency), with_commas(request.context));
  }
  return html_figure(line_chart(chart), "One line a context." + band_words(plan) +
                                            " Whether so many sequences fit into memory is not part of this picture.");
}

std::string decode_table(const Plan& plan) {
  const std::vector<uint64_t> contexts = contexts_of(plan);
  HtmlTable table{.caption = "Least time of a step by batch and context", .head = {"batch", "experts a layer"}};
  for (const uint64_t context : contexts) table.head.push_back("at " + with_commas(context));
  for (const DecodePoint& first : plan.decode) {
    if (first.context != contexts.front()) continue;
    HtmlRow row{.cells = {std::to_string(first.batch), fmt::format("{:.1f}", first.step.distinct_experts)}};
    for (const DecodePoint& point : plan.decode) {
      if (point.batch == first.batch) row.cells.push_back(human_seconds(point.step.total()));
    }
    table.rows.push_back(std::move(row));
  }
  return html_table(table);
}

std::string step_words(const Plan& plan) {
  const StepTime& step = plan.chosen->step;
  std::string text =
      fmt::format("One step of {} sequences at {} tokens in {} takes {}: {} of weights and {} of cache are read",
                  with_commas(plan.request.concurrency), with_commas(plan.request.context), scheme_name(*plan.scheme),
                  in_words(*plan.step), human_bytes(static_cast<uint64_t>(step.weight_bytes)),
                  human_bytes(static_cast<uint64_t>(step.kv_bytes)));
  if (step.distinct_experts > 0)
    text += fmt::format(", {:.1f} of {} experts a layer", step.distinct_experts, plan.subject->spec.experts);
  if (step.exchange > 0) text += fmt::format(", {} are exchange between GPUs", human_seconds(step.exchange));
  text += ".";
  if (plan.chosen->tokens_per_second > 0)
    text += fmt::format(" That is {} tokens a second.", with_commas(rounded(plan.chosen->tokens_per_second)));
  std::string all = html_paragraph(text);
  if (plan.answer)
    all += html_paragraph(fmt::format("One answer of {} tokens behind {} others takes {}.",
                                      with_commas(plan.answer->tokens), with_commas(plan.answer->first_context),
                                      in_words(plan.answer->seconds)));
  if (plan.exchange) {
    std::string exchange = exchange_text(*plan.exchange) + ".";
    exchange[0] = 'E';
    all += html_paragraph(exchange);
  }
  return all;
}

std::string drafting(const Plan& plan) {
  if (!plan.speculation) return "";
  const Speculation& s = *plan.speculation;
  const std::string drafts = s.draft_seconds > 0 ? human_seconds(s.draft_seconds) + " of drafting"
                                                 : std::string("no time for drafting: the model has no layers for it");
  HtmlTable table{.caption = "Tokens a second over those without drafts", .head = {"accepted", "times the tokens"}};
  for (const auto& [acceptance, gain] : s.speedup)
    table.rows.push_back({.cells = {fmt::format("{:.0f} %", acceptance * 100), fmt::format("{:.2f}", gain)}});
  return html_section(
      "drafting", fmt::format("Drafting {} token{} a step", s.drafts, s.drafts == 1 ? "" : "s"),
      html_paragraph(fmt::format(
          "Experts that a layer reads go from {:.1f} to {:.1f}, the step from {} to {} and {}. {}", s.distinct_before,
          s.distinct_after, human_seconds(s.step_seconds), human_seconds(s.verify_seconds), drafts,
          s.break_even ? fmt::format("It loses below an acceptance of {:.0f} %.", 100 * *s.break_even)
                       : std::string("It loses at any acceptance."))) +
          html_table(table));
}

}  // namespace

std::string html_decoding(const Plan& plan) {
  if (!plan.chosen || !plan.step) return "";
  return html_section("decoding", "Latency against batch",
                      step_words(plan) + html_beside(latency_chart(plan) + decode_table(plan))) +
         drafting(plan);
}

std::string html_prefill(const Plan& plan) {
  if (plan.prefill.empty() || !plan.scheme) return "";
  LineChart chart{.id = "prefill",
                  .title = "Least time of reading a prompt against its length",
                  .description = "Both axes are logarithmic. ",
                  .x_title = "tokens of the prompt",
                  .y_title = "ms",
                  .x_label = tick_text,
                  .y_label = tick_text};
  HtmlTable table{.caption = "Least time of a prompt", .head = {"tokens", "at least", "tokens a second"}};
  ChartSeries series{"one prompt", {}};
  for (const PrefillPoint& point : plan.prefill) {
    const std::string name = with_commas(point.tokens) + " tokens";
    series.points.push_back(point_of(plan, of(point.tokens), point.time, name));
    const double seconds = point.time.total();
    chart.description += fmt::format("{}: {}. ", name, human_seconds(seconds));
    table.rows.push_back({.cells = {with_commas(point.tokens), human_seconds(seconds),
                                    with_commas(static_cast<uint64_t>(of(point.tokens) / seconds))}});
  }
  chart.series.push_back(std::move(series));
  return html_section(
      "prompts", "Prefill",
      html_beside(html_figure(line_chart(chart), "One sequence's prompt, all stages." + band_words(plan)) +
                  html_table(table)));
}

}  // namespace nibble
