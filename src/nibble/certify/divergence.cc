#include "nibble/certify/divergence.h"

#include <algorithm>
#include <cmath>

namespace nibble {
namespace {

bool ends(std::span<const TokenId> end_tokens, TokenId token) {
  return std::find(end_tokens.begin(), end_tokens.end(), token) != end_tokens.end();
}

// The value with a share `part` of the others below it; 0 of none.
double quantile(std::vector<double>* values, double part) {
  if (values->empty()) return 0;
  const auto at = static_cast<ptrdiff_t>(part * static_cast<double>(values->size() - 1));
  std::nth_element(values->begin(), values->begin() + at, values->end());
  return (*values)[static_cast<size_t>(at)];
}

}  // namespace

std::string_view divergence_kind_name(DivergenceKind kind) {
  switch (kind) {
    case DivergenceKind::kForked: return "forked";
    case DivergenceKind::kStoppedEarly: return "stopped early";
    case DivergenceKind::kRanOn: return "ran on";
  }
  return "forked";
}

ChainDivergence divergence_of(const Chain& chain, const JudgedChain& judged, std::span<const TokenId> end_tokens) {
  ChainDivergence result;
  result.length = judged.size();
  result.capped = chain.capped;
  result.cluster = chain.cluster;
  for (uint64_t i = 0; i < judged.size(); ++i) {
    const Choice& choice = judged[i];
    if (choice.candidate == choice.token) continue;
    result.first = i;
    if (ends(end_tokens, choice.candidate)) {
      result.kind = DivergenceKind::kStoppedEarly;
    } else if (ends(end_tokens, choice.token)) {
      result.kind = DivergenceKind::kRanOn;
    }
    break;
  }
  return result;
}

std::vector<ChainEnd> chain_ends(std::span<const ChainDivergence> divergences) {
  std::vector<ChainEnd> all;
  all.reserve(divergences.size());
  for (const ChainDivergence& one : divergences) {
    const ChainEndKind whole = one.capped ? ChainEndKind::kCensored : ChainEndKind::kEnded;
    all.push_back({one.first ? *one.first + 1 : one.length, one.first ? ChainEndKind::kDiverged : whole, one.cluster});
  }
  return all;
}

ChoiceTotals choice_totals(std::span<const JudgedChain> chains, double noise) {
  ChoiceTotals totals;
  std::vector<double> kl;
  double sum = 0, difference = 0;
  for (const JudgedChain& chain : chains) {
    for (const Choice& choice : chain) {
      ++totals.tokens;
      totals.reference_flips += choice.reference != choice.token;
      const auto nats = static_cast<double>(choice.kl);
      kl.push_back(nats);
      sum += nats;
      difference += static_cast<double>(choice.reference_log_p) - static_cast<double>(choice.candidate_log_p);
      if (choice.candidate == choice.token) continue;
      ++totals.flips;
      totals.flips_within_noise += static_cast<double>(choice.margin) <= noise;
    }
  }
  if (totals.tokens == 0) return totals;
  const auto count = static_cast<double>(totals.tokens);
  totals.kl_mean = sum / count;
  totals.log_p_mean_difference = difference / count;
  totals.kl_max = *std::max_element(kl.begin(), kl.end());
  totals.kl_median = quantile(&kl, 0.5);
  totals.kl_p99 = quantile(&kl, 0.99);
  return totals;
}

Noise measured_noise(std::span<const JudgedChain> other) {
  Noise noise;
  std::vector<double> differences;
  for (const JudgedChain& chain : other) {
    for (const Choice& choice : chain) {
      ++noise.tokens;
      noise.flips += choice.candidate != choice.reference;
      differences.push_back(
          std::abs(static_cast<double>(choice.margin) - static_cast<double>(choice.candidate_margin)));
    }
  }
  if (differences.empty()) return noise;
  noise.largest = *std::max_element(differences.begin(), differences.end());
  noise.p99 = quantile(&differences, 0.99);
  return noise;
}

std::vector<double> expected_agreement(std::span<const JudgedChain> chains) {
  size_t longest = 0;
  for (const JudgedChain& chain : chains) longest = std::max(longest, chain.size());
  std::vector<double> mean(longest, 0.0);
  for (const JudgedChain& chain : chains) {
    double log_product = 0;
    for (size_t n = 0; n < longest; ++n) {
      if (n < chain.size()) {
        log_product += std::min(
            0.0, static_cast<double>(chain[n].candidate_log_p) - static_cast<double>(chain[n].reference_log_p));
      }
      mean[n] += std::exp(log_product) / static_cast<double>(chains.size());
    }
  }
  return mean;
}

}  // namespace nibble
