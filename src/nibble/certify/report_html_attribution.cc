#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "nibble/certify/report_html_sections.h"
#include "nibble/report/chart/axis.h"
#include "nibble/report/chart/bar_chart.h"
#include "nibble/report/html_parts.h"

namespace nibble {
namespace {

constexpr size_t kBars = 16;
constexpr size_t kRows = 64;

template <typename T>
std::span<const T> first_of(const std::vector<T>& all, size_t most) {
  return std::span(all).first(std::min(all.size(), most));
}

std::string healed_figure(const CandidateCertificate& c, size_t index) {
  const Attribution& a = *c.attribution;
  BarChart chart{.id = fmt::format("attribution-{}", index),
                 .title = fmt::format("First divergences of {} that each group heals", c.name),
                 .description =
                     "One group of weights at a time was taken from the reference; the groups that heal the "
                     "most come first.",
                 .x_title = "healed first divergences",
                 .x_label = tick_text};
  const auto groups = first_of(a.groups, kBars);
  for (const AttributedGroup& group : groups) {
    const std::string name = place_name(group.place), healed = fmt::format("{} of {}", group.healed, a.of);
    chart.bars.push_back(
        {name, healed, {{"", static_cast<double>(group.healed), "fill1", fmt::format("{}: {}", name, healed)}}});
  }
  return html_figure(bar_chart(chart),
                     "A group heals a divergence if the candidate chooses the reference's token again once that group "
                     "alone is the reference's. Groups work together: their counts need not add up to all.");
}

std::string groups_table(const CandidateCertificate& c) {
  const Attribution& a = *c.attribution;
  HtmlTable table{.caption = fmt::format("{}: KL before is {:.4f}", c.name, a.kl_before),
                  .head = {"group", "tensors", "healed", "margin gain", "KL after"}};
  for (const AttributedGroup& group : first_of(a.groups, kRows)) {
    table.rows.push_back(
        {.cells = {place_name(group.place), std::to_string(group.tensors), std::to_string(group.healed),
                   fmt::format("{:.3f}", group.margin_gain), fmt::format("{:.4f}", group.kl_after)}});
  }
  return html_table(table);
}

}  // namespace

std::string html_attribution(const Certificate& certificate) {
  std::string body;
  for (size_t i = 0; i < certificate.candidates.size(); ++i) {
    const CandidateCertificate& c = certificate.candidates[i];
    if (!c.attribution) continue;
    const Attribution& a = *c.attribution;
    body += fmt::format("<h3>{}</h3>\n", markup(c.name)) +
            html_paragraph(fmt::format("{}. {}.", attribution_verdict(a), attribution_basis(a)));
    if (a.groups.empty()) continue;
    // Bars of nothing are no picture.
    const std::string figure = a.groups.front().healed == 0 ? "" : healed_figure(c, i);
    body += html_beside(figure + groups_table(c));
    if (a.groups.size() > kRows)
      body += html_paragraph(fmt::format("{} more groups are in the JSON.", a.groups.size() - kRows));
  }
  return html_section("attribution", "Which weights it comes from", body);
}

}  // namespace nibble
