#include "nibble/plan/report_html.h"

#include <fmt/format.h>

#include "nibble/base/strings.h"
#include "nibble/plan/report.h"
#include "nibble/plan/report_html_sections.h"
#include "nibble/report/html_parts.h"

namespace nibble {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string count_words(double number) {
  if (number >= 1e12) return fmt::format("{:.4g} trillion", number / 1e12);
  return number < 1e9 ? fmt::format("{:.3g} million", number / 1e6) : fmt::format("{:.4g} billion", number / 1e9);
}

std::string subject_of(const Plan& plan) {
  return plan.subject ? plan.subject->name : count_words(*plan.request.total) + " parameters";
}

std::string title_of(const Plan& plan) {
  return fmt::format("{} on {} × {}", subject_of(plan), plan.gpus, plan.device.title);
}

std::string lead(const Plan& plan) {
  std::string text;
  if (plan.subject) {
    const ParamCounts& counts = plan.subject->counts;
    text = fmt::format("{}: {} parameters, {} active a token, {} in routed experts", plan.subject->spec.family,
                       count_words(static_cast<double>(counts.total)), count_words(static_cast<double>(counts.active)),
                       count_words(static_cast<double>(counts.routed)));
    if (counts.mtp != 0)
      text += fmt::format("; {} more in layers that draft tokens", count_words(static_cast<double>(counts.mtp)));
  } else {
    text = fmt::format("{} active a token", count_words(*plan.request.active));
  }
  return fmt::format("<p class=\"lead\">{}. {} of memory and {}/s a GPU{}.</p>\n", markup(text),
                     human_bytes(plan.device.memory_bytes),
                     human_bytes(static_cast<uint64_t>(plan.device.memory_bandwidth)),
                     plan.gpus_chosen ? "; as many GPUs as it takes" : "");
}

std::string verdict(const Plan& plan) {
  const FormatRow& row = plan.rows[plan.detail];
  // The marks beside the words are for eyes that do not tell the colours apart.
  if (!plan.fits) return "<p class=\"verdict no\">✗ It does not fit</p>\n";
  if (!row.fits) return "<p class=\"verdict no\">✗ Other formats fit, this one does not</p>\n";
  const std::string layout = plan.chosen ? ", " + plan.chosen->layout.name() : "";
  return fmt::format("<p class=\"verdict yes\">✓ It fits: {}</p>\n", markup(row.title + layout));
}

std::string ways_out(const Plan& plan) {
  if (plan.fits) return "";
  if (plan.changes.empty())
    return html_section("changes", "What would fit", html_paragraph("No single change of an option helps."));
  HtmlTable table{.caption = "Any one of these makes it fit", .head = {"option", "what comes of it"}};
  for (const Change& change : plan.changes) table.rows.push_back({.cells = {change.what, change.effect}});
  return html_section("changes", "What would fit", html_table(table));
}

std::string tiles(const Plan& plan) {
  const FormatRow& row = plan.rows[plan.detail];
  Facts facts{{"weights", terabytes(row.size.weight_bytes)}};
  if (!plan.chosen || !plan.step) {
    facts.emplace_back("GPUs at least", std::to_string(row.min_gpus));
    facts.emplace_back("floor of a token", human_seconds(row.floor_seconds));
    return html_facts("tiles", facts);
  }
  const MemoryPlan& memory = plan.chosen->memory;
  facts.emplace_back("fullest GPU", fmt::format("{} of {}", human_bytes(memory.total()), human_bytes(memory.capacity)));
  facts.emplace_back(plan.request.concurrency == 1
                         ? "a step of one sequence"
                         : fmt::format("a step of {} sequences", with_commas(plan.request.concurrency)),
                     "at least " + human_seconds(plan.step->floor));
  // A layout that does not fit has none.
  if (plan.chosen->tokens_per_second > 0)
    facts.emplace_back("tokens a second", with_commas(rounded(plan.chosen->tokens_per_second)));
  if (plan.answer)
    facts.emplace_back(fmt::format("an answer of {} tokens", with_commas(plan.answer->tokens)),
                       "at least " + human_seconds(plan.answer->seconds.floor));
  if (plan.chosen->most_sequences != 0)
    facts.emplace_back("sequences at most", with_commas(plan.chosen->most_sequences));
  return html_facts("tiles", facts);
}

std::string asked(const Plan& plan) {
  const PlanRequest& request = plan.request;
  Facts facts{{"GPUs", fmt::format("{} × {}{}", plan.gpus, plan.device.title, plan.gpus_chosen ? " (chosen)" : "")},
              {"GPUs of a machine", std::to_string(request.gpus_per_machine)},
              {"left free by weights", fmt::format("{:.0f} %", request.reserve * 100)}};
  if (plan.subject) {
    const KvCache& cache = plan.subject->cache;
    facts.emplace_back("model from", plan.subject->is_folder ? "a checkpoint" : "a configuration");
    facts.emplace_back("tokens of a sequence", with_commas(request.context));
    facts.emplace_back("sequences at a time", with_commas(request.concurrency));
    const uint64_t bytes = request.kv_element_bytes;
    std::string kept = fmt::format("{} bits, {:.6g} bytes a token", 8 * bytes, cache.bytes_per_token(bytes));
    // Linear attention's states are per sequence; most models have none.
    if (cache.bytes_per_sequence(bytes) != 0)
      kept += fmt::format(", {} a sequence", human_bytes(cache.bytes_per_sequence(bytes)));
    facts.emplace_back("cache", kept);
    facts.emplace_back("searched for", request.target == PlanTarget::kLatency ? "latency" : "throughput");
    facts.emplace_back("drafted tokens a step", std::to_string(request.draft));
    facts.emplace_back("experts' popularity",
                       request.skew == 0 ? "uniform" : fmt::format("1 / rank^{:.3g}", request.skew));
  }
  std::string notes;
  if (!plan.notes.empty()) notes = "<h3>Notes</h3>\n" + html_list(plan.notes);
  return html_section("asked", "What was asked", html_facts("asked", facts) + notes);
}

}  // namespace

std::string plan_html(const Plan& plan) {
  std::string page = lead(plan) + verdict(plan) + tiles(plan) + ways_out(plan) + html_formats(plan);
  if (plan.subject)
    page += html_memory(plan) + html_decoding(plan) + html_prefill(plan) + html_schemes(plan) + html_layouts(plan);
  return html_page(title_of(plan), page + asked(plan));
}

}  // namespace nibble
