#include "nibble/certify/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

namespace nibble {
namespace {

constexpr uint64_t kLengthClasses = 4;

std::vector<LengthClass> classes_by_length(std::span<const ChainDivergence> divergences,
                                           const BootstrapOptions& bootstrap) {
  std::vector<ChainDivergence> sorted(divergences.begin(), divergences.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const ChainDivergence& a, const ChainDivergence& b) { return a.length < b.length; });
  std::vector<LengthClass> classes;
  size_t first = 0;
  for (uint64_t k = 1; k <= kLengthClasses; ++k) {
    size_t end = sorted.size() * k / kLengthClasses;
    // Equal lengths are in one class.
    while (end > first && end < sorted.size() && sorted[end].length == sorted[end - 1].length) ++end;
    if (end <= first) continue;
    const std::span<const ChainDivergence> some = std::span(sorted).subspan(first, end - first);
    classes.push_back(
        {some.front().length, some.back().length, some.size(), agreement_survival(chain_ends(some), bootstrap)});
    first = end;
  }
  return classes;
}

Fork fork_of(uint64_t chain, const ChainDivergence& divergence, const JudgedChain& judged, double noise) {
  const Choice& at = judged[*divergence.first];
  Fork fork{.chain = chain, .position = *divergence.first, .kind = divergence.kind};
  fork.token = at.token;
  fork.reference = at.reference;
  fork.candidate = at.candidate;
  fork.margin = static_cast<double>(at.margin);
  fork.kl = static_cast<double>(at.kl);
  fork.candidate_p = std::exp(static_cast<double>(at.candidate_log_p));
  fork.within_noise = fork.margin <= noise;
  const uint64_t behind = judged.size() - fork.position - 1;
  for (uint64_t i = fork.position + 1; i < judged.size(); ++i) {
    fork.kl_behind += static_cast<double>(judged[i].kl) / static_cast<double>(behind);
  }
  return fork;
}

void count(const ChainDivergence& one, CandidateCertificate* result) {
  ++result->chains;
  if (!one.first) {
    ++result->whole;
    return;
  }
  switch (one.kind) {
    case DivergenceKind::kForked: ++result->forked; return;
    case DivergenceKind::kStoppedEarly: ++result->stopped_early; return;
    case DivergenceKind::kRanOn: ++result->ran_on; return;
  }
}

// Hazards of the first and the last half of all divergences' choices tell which way independence fails.
std::string explain(const CandidateCertificate& c) {
  if (c.implied.at_least) return "";
  const double last = c.survival.empty() ? 0 : static_cast<double>(c.survival.back().time);
  const double measured = c.measured ? static_cast<double>(*c.measured) : last;
  if (c.measured ? std::abs(measured - c.implied.tokens) <= c.implied.tokens / 3 : last < c.implied.tokens) return "";
  if (measured < c.implied.tokens) {
    return "answers leave earlier than their flips spread evenly would make them: flips are more frequent at the start";
  }
  return "answers leave later than independent flips would make them: flips come in clusters, in few answers or behind "
         "a "
         "first one";
}

double whole_share(const CandidateCertificate& c) {
  return c.chains == 0 ? 0 : static_cast<double>(c.whole) / static_cast<double>(c.chains);
}

using Value = std::optional<double> (*)(const CandidateCertificate&);

template <auto Member>
std::optional<double> task_value(const CandidateCertificate& c) {
  if (!c.task) return std::nullopt;
  return static_cast<double>((*c.task).*Member);
}

const std::map<std::string, Value, std::less<>>& gate_values() {
  static const std::map<std::string, Value, std::less<>> values = {
      {"flip_rate", [](const CandidateCertificate& c) { return std::optional(c.totals.flip_rate()); }},
      {"horizon",
       [](const CandidateCertificate& c) -> std::optional<double> {
         if (c.measured) return static_cast<double>(*c.measured);
         return c.survival.empty() ? 0 : static_cast<double>(c.survival.back().time);
       }},
      {"implied_horizon", [](const CandidateCertificate& c) { return std::optional(c.implied.tokens); }},
      {"kl_mean", [](const CandidateCertificate& c) { return std::optional(c.totals.kl_mean); }},
      {"kl_p99", [](const CandidateCertificate& c) { return std::optional(c.totals.kl_p99); }},
      {"whole", [](const CandidateCertificate& c) { return std::optional(whole_share(c)); }},
      {"single_step", task_value<&TaskScore::single_step>},
      {"mean_run", task_value<&TaskScore::mean_run>},
      {"chains_right", task_value<&TaskScore::whole_share>},
  };
  return values;
}

}  // namespace

CandidateCertificate certify_candidate(const std::vector<Chain>& chains, const std::vector<JudgedChain>& judged,
                                       std::span<const TokenId> end_tokens, double noise,
                                       const BootstrapOptions& bootstrap) {
  CandidateCertificate result;
  result.totals = choice_totals(judged, noise);
  for (size_t i = 0; i < chains.size(); ++i) {
    result.divergences.push_back(divergence_of(chains[i], judged[i], end_tokens));
    count(result.divergences.back(), &result);
    if (result.divergences.back().first)
      result.forks.push_back(fork_of(i, result.divergences.back(), judged[i], noise));
  }
  const std::vector<ChainEnd> ends = chain_ends(result.divergences);
  result.incidence = divergence_incidence(ends, bootstrap);
  result.survival = agreement_survival(ends, bootstrap);
  result.hazard = divergence_hazard(ends, bootstrap);
  result.by_length = classes_by_length(result.divergences, bootstrap);
  result.implied = implied_horizon(result.totals.flips, result.totals.tokens);
  result.measured = measured_horizon(result.survival);
  result.why_they_differ = explain(result);
  return result;
}

std::vector<size_t> widest_forks(const CandidateCertificate& candidate, size_t count) {
  std::vector<size_t> order(candidate.forks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return candidate.forks[a].margin > candidate.forks[b].margin; });
  if (order.size() > count) order.resize(count);
  return order;
}

const std::vector<std::string>& gate_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [name, value] : gate_values()) all.push_back(name);
    return all;
  }();
  return names;
}

std::optional<double> gate_value(const CandidateCertificate& candidate, std::string_view name) {
  const auto found = gate_values().find(name);
  return found == gate_values().end() ? std::nullopt : found->second(candidate);
}

std::string short_name(const std::string& path) {
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

void describe_chains(const std::vector<Chain>& chains, Certificate* certificate) {
  certificate->chains = chains.size();
  for (const Chain& chain : chains) {
    const uint64_t length = chain.answer.size() - chain.given.size();
    certificate->tokens += length;
    certificate->capped += chain.capped ? 1 : 0;
    certificate->longest = std::max(certificate->longest, length);
    certificate->shortest = certificate->shortest == 0 ? length : std::min(certificate->shortest, length);
  }
  if (chains.empty()) return;
  certificate->mean_length = static_cast<double>(certificate->tokens) / static_cast<double>(chains.size());
}

}  // namespace nibble
