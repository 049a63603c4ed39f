#include <fmt/format.h>

#include "nibble/base/strings.h"
#include "nibble/plan/report.h"
#include "nibble/plan/report_html_sections.h"
#include "nibble/report/chart/axis.h"
#include "nibble/report/chart/bar_chart.h"
#include "nibble/report/html_parts.h"

namespace nibble {
namespace {

struct MemoryTerm {
  std::string name;
  uint64_t bytes = 0;
  std::string css, why;
};

std::string words_of(Role role) {
  std::string name(role_name(role));
  for (char& c : name) c = c == '_' ? ' ' : c;
  return name;
}

std::vector<MemoryTerm> terms_of(const Plan& plan) {
  const MemoryPlan& memory = plan.chosen->memory;
  std::vector<MemoryTerm> terms;
  for (size_t i = 0; i < memory.by_role.size(); ++i) {
    if (memory.by_role[i] == 0) continue;
    const std::string css = fmt::format("w{}", terms.size() % 6 + 1);
    terms.push_back({"weights: " + words_of(static_cast<Role>(i)), memory.by_role[i], css, ""});
  }
  const auto add = [&](const char* name, uint64_t bytes, const char* css, std::string why) {
    if (bytes != 0) terms.push_back({name, bytes, css, std::move(why)});
  };
  add("cache", memory.kv, "cache",
      fmt::format("{} × {} tokens", with_commas(plan.request.concurrency), with_commas(plan.request.context)));
  add("activations", memory.activations, "act", fmt::format("of {} tokens at a time", with_commas(kPrefillChunk)));
  add("workspace", memory.workspace, "work", "");
  add("communication", memory.communication, "comm", "");
  add("captured graphs", memory.graphs, "graph", fmt::format("{} to this", human_bytes(memory.graphs_low)));
  add("left of the reserve", memory.reserve, "free", fmt::format("{:.0f} % in all", plan.request.reserve * 100));
  return terms;
}

std::string amount(const MemoryPlan& memory) {
  const std::string of = fmt::format("{} of {}", human_bytes(memory.total()), human_bytes(memory.capacity));
  return memory.fits() ? of : of + fmt::format(": {} too much", human_bytes(memory.total() - memory.capacity));
}

std::string memory_chart(const Plan& plan, const std::vector<MemoryTerm>& terms) {
  const MemoryPlan& memory = plan.chosen->memory;
  BarChart chart{.id = "memory-by-class",
                 .title = "Memory of the fullest GPU by class",
                 .description = amount(memory) + ". ",
                 .height = 46,
                 .limit = static_cast<double>(memory.capacity) / 1e9,
                 .limit_name = "capacity " + human_bytes(memory.capacity),
                 .names_inside = true,
                 .x_title = "GB",
                 .x_label = tick_text};
  // The right end is the limit's place: all words stand on the left.
  ChartBar bar{amount(memory), "", {}};
  for (const MemoryTerm& term : terms) {
    const std::string tip = fmt::format("{}: {}", term.name, human_bytes(term.bytes));
    // The bar itself says that they are weights: one hue.
    const std::string name = starts_with(term.name, "weights: ") ? term.name.substr(9) : term.name;
    bar.parts.push_back({term.css == "free" ? "" : name, static_cast<double>(term.bytes) / 1e9, term.css, tip});
    chart.description += tip + ". ";
  }
  chart.bars.push_back(std::move(bar));
  return html_figure(bar_chart(chart), memory.fits()
                                           ? "One bar is one GPU. The outlined end is what is left of the reserve."
                                           : "One bar is one GPU. The hatched end is what does not fit on it.");
}

std::string memory_table(const Plan& plan, const std::vector<MemoryTerm>& terms) {
  const MemoryPlan& memory = plan.chosen->memory;
  HtmlTable table{.caption = "On the fullest GPU", .head = {"class", "bytes", "of its memory", ""}};
  const auto share = [&](uint64_t bytes) {
    return fmt::format("{:.1f} %", 100.0 * static_cast<double>(bytes) / static_cast<double>(memory.capacity));
  };
  for (const MemoryTerm& term : terms)
    table.rows.push_back({.cells = {term.name, human_bytes(term.bytes), share(term.bytes), term.why},
                          .swatch = term.css,
                          .marked = false});
  const std::string too_much = memory.fits() ? "" : human_bytes(memory.total() - memory.capacity) + " too much";
  table.rows.push_back(
      {.cells = {"sum", human_bytes(memory.total()), share(memory.total()), too_much}, .marked = true});
  return html_table(table);
}

}  // namespace

std::string html_memory(const Plan& plan) {
  if (!plan.chosen) return "";
  const std::vector<MemoryTerm> terms = terms_of(plan);
  const MemoryPlan& memory = plan.chosen->memory;
  const std::string picture =
      html_paragraph(fmt::format("{}, laid out as {}.", plan.rows[plan.detail].title, plan.chosen->layout.name())) +
      memory_chart(plan, terms) +
      html_paragraph(
          fmt::format("While loading, {} more are needed for repacking ({} in engines that repack a layer at "
                      "once).",
                      human_bytes(memory.repack), human_bytes(memory.largest_stack)));
  return html_section("memory", "Memory of the fullest GPU",
                      html_beside("<div>\n" + picture + "</div>\n" + memory_table(plan, terms)));
}

}  // namespace nibble
