#include "nibble/ledger/routing.h"

#include <algorithm>
#include <cmath>

#include "nibble/base/check.h"

namespace nibble {
namespace {

// Probabilities that sum to k and fall as 1 / i^s, none above 1: what the cap takes goes to the others.
std::vector<double> zipf(uint64_t experts, uint64_t per_token, double skew) {
  std::vector<double> weight(experts);
  for (uint64_t i = 0; i < experts; ++i) weight[i] = std::pow(static_cast<double>(i + 1), -skew);
  uint64_t full = 0;
  double rest = 0;
  for (const double w : weight) rest += w;
  // The popular ones come first: once an expert is below 1, all later ones are.
  while (full < per_token) {
    const double scale = static_cast<double>(per_token - full) / rest;
    if (weight[full] * scale < 1) break;
    rest -= weight[full];
    ++full;
  }
  const double scale = rest > 0 ? static_cast<double>(per_token - full) / rest : 0;
  for (uint64_t i = 0; i < experts; ++i) weight[i] = i < full ? 1 : std::min(1.0, weight[i] * scale);
  return weight;
}

}  // namespace

Routing::Routing(uint64_t experts, uint64_t per_token, double skew) : experts_(experts) {
  NIBBLE_CHECK(experts > 0 && per_token > 0 && per_token <= experts && skew >= 0);
  if (skew > 0) {
    probability_ = zipf(experts, per_token, skew);
  } else {
    probability_ = {static_cast<double>(per_token) / static_cast<double>(experts)};
  }
}

double Routing::share(double tokens) const {
  double touched = 0;
  for (const double p : probability_) touched += p >= 1 ? 1 : -std::expm1(tokens * std::log1p(-p));
  return touched / static_cast<double>(probability_.size());
}

double Routing::busiest_share(double tokens, uint64_t ranks) const {
  const double mean = share(tokens);
  if (ranks <= 1 || mean <= 0 || mean >= 1) return mean;
  const uint64_t held = (experts_ + ranks - 1) / ranks;
  // Sum over x of P(largest > x) = 1 - P(one <= x)^ranks, the probabilities built up from P(0).
  const double odds = mean / (1 - mean);
  double term = std::exp(static_cast<double>(held) * std::log1p(-mean));
  double at_most = term;
  double expectation = 1 - std::pow(at_most, static_cast<double>(ranks));
  for (uint64_t x = 1; x < held; ++x) {
    term *= odds * static_cast<double>(held - x + 1) / static_cast<double>(x);
    at_most = std::min(1.0, at_most + term);
    expectation += 1 - std::pow(at_most, static_cast<double>(ranks));
  }
  return std::clamp(expectation / static_cast<double>(held), mean, 1.0);
}

double Routing::rank_load(uint64_t ranks) const {
  if (ranks <= 1 || probability_.size() == 1) return 1;
  double sum = 0;
  double first = 0;
  for (size_t i = 0; i < probability_.size(); ++i) {
    sum += probability_[i];
    if (i % ranks == 0) first += probability_[i];
  }
  return std::max(1.0, first * static_cast<double>(ranks) / sum);
}

double Routing::distinct(double tokens) const { return share(tokens) * static_cast<double>(experts_); }

double Routing::imbalance() const {
  double sum = 0;
  for (const double p : probability_) sum += p;
  return probability_[0] * static_cast<double>(probability_.size()) / sum;
}

}  // namespace nibble
