#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "nibble/base/strings.h"
#include "nibble/plan/report.h"
#include "nibble/plan/report_html_sections.h"
#include "nibble/report/html_parts.h"

namespace nibble {
namespace {

constexpr size_t kRows = 12;  // of a list; all of them are in the JSON

std::string and_more(size_t all) {
  return all <= kRows ? "" : html_paragraph(fmt::format("And {} more.", all - kRows));
}

std::string in_column(const std::string& pieces) { return pieces.empty() ? "" : "<div>\n" + pieces + "</div>\n"; }

std::string found(const Plan& plan) {
  const auto& plans = plan.search.plans;
  HtmlTable table{.caption = "Layouts that fit, best first; the first one is this page's",
                  .head = {"layout", "bytes a GPU", "a step at least", "tokens a second"}};
  for (size_t i = 0; i < std::min(plans.size(), kRows); ++i) {
    const LayoutPlan& made = plans[i];
    table.rows.push_back({.cells = {made.layout.name(), human_bytes(made.memory.total()),
                                    human_seconds(made.step.total()), with_commas(rounded(made.tokens_per_second))},
                          .marked = i == 0});
  }
  return in_column(html_table(table) + and_more(plans.size()));
}

std::string too_large(const Plan& plan) {
  const auto& plans = plan.search.too_large;
  HtmlTable table{.caption = "Layouts that are possible and too large, least missing first",
                  .head = {"layout", "needs a GPU", "has", "too much"}};
  for (size_t i = 0; i < std::min(plans.size(), kRows); ++i) {
    const MemoryPlan& memory = plans[i].memory;
    table.rows.push_back({.cells = {plans[i].layout.name(), human_bytes(memory.total()), human_bytes(memory.capacity),
                                    human_bytes(memory.total() - memory.capacity)}});
  }
  return in_column(html_table(table) + and_more(plans.size()));
}

// One reason stands for all layouts that it forbids.
std::string refused(const Plan& plan) {
  std::vector<const LayoutRefusal*> reasons;
  std::map<std::string, std::vector<std::string>> layouts;
  for (const RefusedLayout& no : plan.search.refused) {
    std::vector<std::string>& names = layouts[no.refusal.reason];
    if (names.empty()) reasons.push_back(&no.refusal);
    names.push_back(no.layout.name());
  }
  HtmlTable table{.caption = "Layouts that are not possible", .head = {"layout", "why not", "ways out"}};
  for (size_t i = 0; i < std::min(reasons.size(), kRows); ++i) {
    const std::vector<std::string>& names = layouts[reasons[i]->reason];
    std::string ways;
    for (const std::string& way : reasons[i]->ways_out) ways += (ways.empty() ? "" : "; or: ") + way;
    const std::string more = names.size() == 1 ? "" : fmt::format(" and {} more", names.size() - 1);
    table.rows.push_back({.cells = {names.front() + more, reasons[i]->reason, ways}});
  }
  return html_table(table) + and_more(reasons.size());
}

std::string time_cell(const SchemeTime& time, bool chosen) {
  if (!time.obstacle.empty()) return "–";
  return human_seconds(time.seconds) + (time.compute_bound ? ", arithmetic" : ", memory") + (chosen ? " ✓" : "");
}

std::string crossovers(const SchemePlan& schemes) {
  std::string text;
  const auto add = [&](const std::optional<uint64_t>& from, const char* what) {
    if (from)
      text += html_paragraph(fmt::format("From {} tokens on W4A16 is slower than {}.", with_commas(*from), what));
  };
  add(schemes.slower_than_8bit, "8-bit weights and arithmetic");
  add(schemes.slower_than_16bit, "16-bit weights");
  return text;
}

}  // namespace

std::string html_schemes(const Plan& plan) {
  const auto& choices = plan.schemes.choices;
  if (choices.empty()) return "";
  HtmlTable table{.caption = "Experts of one layer on one GPU; ✓ is chosen", .head = {"phase", "tokens"}};
  std::vector<std::string> obstacles;
  for (const SchemeTime& time : choices.front().times) {
    table.head.emplace_back(scheme_name(time.scheme));
    if (!time.obstacle.empty()) obstacles.push_back(fmt::format("{}: {}", scheme_name(time.scheme), time.obstacle));
  }
  for (const char* title : {"in 8 bits", "in 16 bits", "why"}) table.head.emplace_back(title);
  const auto or_none = [](double seconds) { return seconds > 0 ? human_seconds(seconds) : std::string("–"); };
  for (const SchemeChoice& choice : choices) {
    HtmlRow row{.cells = {choice.phase, with_commas(choice.tokens)}};
    for (const SchemeTime& time : choice.times) row.cells.push_back(time_cell(time, time.scheme == choice.chosen));
    for (const double seconds : {choice.seconds_8bit, choice.seconds_16bit}) row.cells.push_back(or_none(seconds));
    row.cells.push_back(choice.reason);
    table.rows.push_back(std::move(row));
  }
  return html_section("arithmetic", "Arithmetic of the experts",
                      html_table(table) + crossovers(plan.schemes) + html_list(obstacles));
}

std::string html_layouts(const Plan& plan) {
  return html_section("layouts", "Layouts", html_beside(found(plan) + too_large(plan)) + refused(plan));
}

}  // namespace nibble
