#include "nibble/ledger/routing.h"

#include <algorithm>
#include <cmath>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"

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

// Expectation of the largest of `count` binomial numbers: the sum over x of P(largest > x). Probabilities are relative
// to that of the most likely number, from which they fall on both sides: P(0) of many trials is 0 as a double.
double expected_largest(uint64_t trials, double p, uint64_t count) {
  constexpr double kNegligible = 1e-24;  // even times the largest `count`
  const double odds = p / (1 - p);
  // P(x + 1) / P(x).
  const auto ratio = [&](uint64_t x) { return odds * static_cast<double>(trials - x) / static_cast<double>(x + 1); };
  const uint64_t mode = std::min(trials, static_cast<uint64_t>(static_cast<double>(trials + 1) * p));
  double sum = 1;
  uint64_t low = mode;
  for (double term = 1; low > 0 && term > kNegligible; --low) sum += term /= ratio(low - 1);
  uint64_t high = mode;
  double term = 1;
  for (; high < trials && term > kNegligible; ++high) sum += term *= ratio(high);
  double expectation = static_cast<double>(low);  // of these x the largest is above all
  double above = 0;                               // P(x > high)
  for (uint64_t x = high; x > low; --x) {
    above = std::min(1.0, above + term / sum);
    expectation += -std::expm1(static_cast<double>(count) * std::log1p(-above));
    term /= ratio(x - 1);
  }
  return expectation;
}

}  // namespace

Routing::Routing(uint64_t experts, uint64_t per_token, double skew)
    : experts_(experts), chosen_(static_cast<double>(per_token)) {
  NIBBLE_CHECK(experts > 0 && per_token > 0 && per_token <= experts && skew >= 0);
  if (skew > 0) {
    probability_ = zipf(experts, per_token, skew);
  } else {
    probability_ = {static_cast<double>(per_token) / static_cast<double>(experts)};
  }
}

double Routing::share(double tokens) const {
  if (tokens == 1) return chosen_ / static_cast<double>(experts_);
  double touched = 0;
  for (const double p : probability_) touched += p >= 1 ? 1 : -std::expm1(tokens * std::log1p(-p));
  return touched / static_cast<double>(probability_.size());
}

double Routing::busiest_share(double tokens, uint64_t ranks) const {
  const double mean = share(tokens);
  if (ranks <= 1 || mean <= 0 || mean >= 1) return mean;
  const uint64_t held = ceil_div(experts_, ranks);
  return std::clamp(expected_largest(held, mean, ranks) / static_cast<double>(held), mean, 1.0);
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
