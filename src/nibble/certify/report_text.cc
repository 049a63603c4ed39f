#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "nibble/base/table.h"
#include "nibble/certify/report.h"

namespace nibble {
namespace {

constexpr size_t kGroupRows = 12;

using Rows = std::vector<std::vector<std::string>>;

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string measured_text(const CandidateCertificate& c) {
  if (c.measured) return fmt::format("{}", *c.measured);
  return c.survival.empty() ? "" : fmt::format("> {}", c.survival.back().time);
}

std::string implied_text(const ImpliedHorizon& implied) {
  return fmt::format("{}{:.1f}", implied.at_least ? "> " : "", implied.tokens);
}

std::string chains_row(const Certificate& c) {
  std::string text =
      fmt::format("{} chains, {} tokens ({} to {} a chain, {} cut by the limit), {}; {}, keys and values {}\n",
                  c.chains, c.tokens, c.shortest, c.longest, c.capped, c.chains_from, c.scheme, c.kv);
  if (c.noise) {
    text += fmt::format(
        "noise: on the {} path the reference makes {} other choices of {}; its margins move by {:.2g} at most\n",
        c.noise_scheme, c.noise->flips, c.noise->tokens, c.noise->largest);
  }
  return text;
}

std::string choices_table(const Certificate& certificate) {
  Rows rows = {{"candidate", "flips", "within noise", "whole", "median divergence", "implied", "KL mean", "KL p99"}};
  for (const CandidateCertificate& c : certificate.candidates) {
    rows.push_back({c.name, percent(c.totals.flip_rate()), fmt::format("{}", c.totals.flips_within_noise),
                    fmt::format("{} of {}", c.whole, c.chains), measured_text(c), implied_text(c.implied),
                    fmt::format("{:.2e}", c.totals.kl_mean), fmt::format("{:.2e}", c.totals.kl_p99)});
  }
  return table_text(rows);
}

std::vector<std::string> task_row(const std::string& name, const TaskScore& s) {
  return {name,
          fmt::format("{:.3f} ± {:.3f} %", 100 * s.single_step, 100 * s.standard_error),
          fmt::format("{:.1f}", s.mean_run),
          percent(s.whole_share),
          percent(s.independent_prediction),
          fmt::format("{} ({} right as far)", s.truncated, s.right_as_far),
          fmt::format("{} ({} at the end)", s.contexts, s.end_contexts),
          fmt::format("{}", s.cycles)};
}

std::string task_table(const Certificate& certificate) {
  Rows rows = {
      {"free-running", "single step", "mean run", "whole", "if independent", "truncated", "contexts", "cycles"}};
  if (certificate.reference_task) rows.push_back(task_row("reference", *certificate.reference_task));
  for (const CandidateCertificate& c : certificate.candidates) {
    if (c.task) rows.push_back(task_row(c.name, *c.task));
  }
  return rows.size() == 1 ? "" : "\n" + table_text(rows);
}

// The groups that heal the most.
std::string attribution_table(const CandidateCertificate& c) {
  if (!c.attribution) return "";
  const Attribution& a = *c.attribution;
  std::string text = fmt::format("\n{}, one group of weights at a time from the reference: {}\n{}; {}\n", c.name,
                                 attribution_verdict(a), attribution_basis(a), attribution_cost(a));
  if (a.groups.empty()) return text;
  Rows rows = {{"group", "tensors", "healed", "margin gain", "KL before", "KL after"}};
  for (const AttributedGroup& group : std::span(a.groups).first(std::min(a.groups.size(), kGroupRows))) {
    rows.push_back({place_name(group.place), fmt::format("{}", group.tensors),
                    fmt::format("{} of {}", group.healed, a.of), fmt::format("{:+.3f}", group.margin_gain),
                    fmt::format("{:.2e}", a.kl_before), fmt::format("{:.2e}", group.kl_after)});
  }
  text += table_text(rows);
  if (a.groups.size() > kGroupRows) text += fmt::format("… {} more: --json\n", a.groups.size() - kGroupRows);
  return text;
}

}  // namespace

std::string certificate_text(const Certificate& certificate) {
  std::string text = chains_row(certificate) + "\n" + choices_table(certificate) + task_table(certificate);
  for (const CandidateCertificate& c : certificate.candidates) {
    if (!c.why_they_differ.empty()) text += fmt::format("\n{}: {}\n", c.name, c.why_they_differ);
    if (c.totals.reference_flips != 0) {
      text += fmt::format(
          "\nthe reference itself chooses otherwise at {} of {} places: another engine wrote these chains\n",
          c.totals.reference_flips, c.totals.tokens);
      break;
    }
  }
  for (const CandidateCertificate& c : certificate.candidates) text += attribution_table(c);
  return text;
}

}  // namespace nibble
