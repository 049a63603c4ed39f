#include <fmt/format.h>

#include <algorithm>

#include "nibble/base/strings.h"
#include "nibble/certify/report_html_sections.h"
#include "nibble/report/html_parts.h"

namespace nibble {
namespace {

constexpr size_t kTokensBefore = 24;  // of the text in front of a fork
constexpr size_t kTokensBehind = 16;

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string implied_words(const ImpliedHorizon& implied) {
  return implied.at_least ? fmt::format("more than {:.0f}", implied.tokens) : fmt::format("{:.1f}", implied.tokens);
}

std::string text_of(std::span<const TokenId> ids, const CertificateTexts& texts) {
  if (texts.decode) {
    std::string text = texts.decode(ids);
    // A table's cell has one paragraph.
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }
  std::string list;
  for (const TokenId id : ids) list += (list.empty() ? "" : " ") + std::to_string(id);
  return list;
}

std::string candidate_text(const Fork& fork, const CertificateTexts& texts) {
  if (fork.continuation.empty()) return text_of(std::span(&fork.candidate, 1), texts);
  return text_of(fork.continuation, texts) + "…";
}

HtmlRow fork_row(const Fork& fork, const Chain& chain, const CertificateTexts& texts) {
  const std::vector<uint64_t> positions = chosen_positions(chain);
  const uint64_t at = positions[fork.position];
  const std::span<const TokenId> answer(chain.answer);
  const uint64_t from = at > kTokensBefore ? at - kTokensBefore : 0;
  const uint64_t end = std::min<uint64_t>(at + 1 + kTokensBehind, answer.size());
  std::vector<TokenId> other(answer.begin() + static_cast<ptrdiff_t>(from),
                             answer.begin() + static_cast<ptrdiff_t>(at));
  const std::string before = text_of(other, texts);
  return {.cells = {fmt::format("{} · {}", fork.chain, fork.position), (from > 0 ? "…" : "") + before,
                    text_of(answer.subspan(at, end - at), texts) + (end < answer.size() ? "…" : ""),
                    candidate_text(fork, texts), std::string(divergence_kind_name(fork.kind)),
                    fmt::format("{:.3f}{}", fork.margin, fork.within_noise ? " (noise)" : ""),
                    fmt::format("{:.3f}", fork.kl), fmt::format("{:.3f}", fork.kl_behind)}};
}

HtmlRow task_row(const std::string& name, const TaskScore& s) {
  return {.cells = {name, fmt::format("{:.3f} ± {:.3f} %", 100 * s.single_step, 100 * s.standard_error),
                    fmt::format("{:.1f}", s.mean_run),
                    fmt::format("{} ({} to {})", percent(s.whole_share), percent(s.whole_band.low),
                                percent(s.whole_band.high)),
                    percent(s.independent_prediction), fmt::format("{} ({} right as far)", s.truncated, s.right_as_far),
                    fmt::format("{} ({} at the end)", with_commas(s.contexts), with_commas(s.end_contexts)),
                    std::to_string(s.cycles)}};
}

}  // namespace

std::string html_choices(const Certificate& certificate) {
  HtmlTable table{.caption = "Choices behind the reference's own tokens",
                  .head = {"candidate", "flips", "within noise", "kept whole", "half have left after",
                           "implied by flips", "KL, mean", "KL, 99 %"}};
  std::vector<std::string> notes;
  for (const CandidateCertificate& c : certificate.candidates) {
    table.rows.push_back(
        {.cells = {c.name, percent(c.totals.flip_rate()), with_commas(c.totals.flips_within_noise),
                   fmt::format("{} of {}", c.whole, c.chains), horizon_words(c), implied_words(c.implied),
                   fmt::format("{:.4f}", c.totals.kl_mean), fmt::format("{:.4f}", c.totals.kl_p99)}});
    notes.push_back(fmt::format("{}: {} forked, {} stopped early, {} ran on. {}", c.name, c.forked, c.stopped_early,
                                c.ran_on, c.why_they_differ));
  }
  if (!certificate.candidates.empty() && certificate.candidates[0].totals.reference_flips != 0) {
    notes.push_back(
        fmt::format("The reference itself chooses otherwise at {} places: another engine wrote these chains.",
                    certificate.candidates[0].totals.reference_flips));
  }
  return html_section("choices", "What each candidate keeps", html_table(table) + html_list(notes));
}

std::string html_tasks(const Certificate& certificate) {
  HtmlTable table{.caption = "Free-running: every chosen token is what the model reads next",
                  .head = {"model", "right steps", "mean run", "chains right", "if steps were independent", "truncated",
                           "contexts", "cycles"}};
  if (certificate.reference_task) table.rows.push_back(task_row("reference", *certificate.reference_task));
  for (const CandidateCertificate& c : certificate.candidates) {
    if (c.task) table.rows.push_back(task_row(c.name, *c.task));
  }
  return table.rows.empty() ? "" : html_section("tasks", "Checkable chains", html_table(table));
}

std::string html_forks(const Certificate& certificate, const std::vector<Chain>& chains,
                       const CertificateTexts& texts) {
  std::string body;
  for (const CandidateCertificate& c : certificate.candidates) {
    HtmlTable table{.caption = c.name,
                    .head = {"chain · position", "before", "reference goes on", "candidate", "kind", "margin",
                             "KL here", "KL behind"}};
    for (const size_t i : widest_forks(c, kForkTexts)) {
      table.rows.push_back(fork_row(c.forks[i], chains[c.forks[i].chain], texts));
    }
    body += html_table(table);
  }
  if (body.empty()) return "";
  return html_section(
      "forks", "Where they part",
      html_paragraph("The widest margins first: there the reference was surest of its own choice. A small "
                     "margin is a coin toss that either model may lose; a large one, and a divergence that "
                     "stays high behind it, is another answer.") +
          body);
}

}  // namespace nibble
