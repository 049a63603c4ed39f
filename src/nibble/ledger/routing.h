// How many experts a batch reads. Each token chooses k different ones of E.
//
// Uniform: every expert with probability k / E, so of B tokens' choices E · (1 - (1 - k/E)^B) are different ones.
// Skewed: expert i's popularity falls as 1 / i^s (Zipf), with no expert chosen by more than every token; fewer
// different ones are read, and the busiest decides how long a rank takes.
#pragma once

#include <cstdint>
#include <vector>

namespace nibble {

class Routing {
 public:
  // `skew` 0: uniform.
  Routing(uint64_t experts, uint64_t per_token, double skew = 0);

  // Expected number of different experts that `tokens` tokens read in one layer.
  double distinct(double tokens) const;
  // The same as a share of all experts.
  double share(double tokens) const;
  // Of `ranks` that hold an equal number of experts each, the busiest one's share of its own: the expectation of the
  // largest of so many binomial numbers. With 1 rank it is share().
  double busiest_share(double tokens, uint64_t ranks) const;
  // Tokens that the busiest of `ranks` ranks gets over the average, experts dealt out by popularity in turn.
  double rank_load(uint64_t ranks) const;
  // Expected tokens of the busiest expert over those of an average one.
  double imbalance() const;

 private:
  std::vector<double> probability_;  // that one token chooses the expert; one entry if uniform
  uint64_t experts_;
  double chosen_;  // by one token
};

}  // namespace nibble
