#include "nibble/ledger/routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "nibble/base/rng.h"

namespace nibble {
namespace {

// E (1 - (1 - k / E)^B) for E 128, k 8.
TEST(Routing, C103_distinct_experts_grow_with_the_batch) {
  const Routing routing(128, 8);
  EXPECT_NEAR(routing.distinct(1), 8, 1e-12);
  EXPECT_NEAR(routing.distinct(4), 29.12, 0.005);
  EXPECT_NEAR(routing.distinct(16), 82.42, 0.005);
  EXPECT_NEAR(routing.distinct(64), 125.94, 0.005);
  EXPECT_NEAR(routing.share(1e9), 1, 1e-12);
  EXPECT_DOUBLE_EQ(routing.imbalance(), 1);
}

TEST(Routing, all_experts_for_every_token) {
  const Routing routing(4, 4);
  EXPECT_EQ(routing.distinct(1), 4);
  EXPECT_EQ(Routing(4, 4, 1.5).distinct(3), 4);
}

TEST(Routing, skew_reads_fewer_experts_and_loads_one_more) {
  double before = Routing(256, 8).distinct(32);
  double load = 1;
  for (const double skew : {0.25, 0.5, 1.0, 2.0}) {
    const Routing routing(256, 8, skew);
    EXPECT_NEAR(routing.distinct(1), 8, 1e-9) << skew;  // every token still chooses 8
    EXPECT_LT(routing.distinct(32), before) << skew;
    EXPECT_GE(routing.imbalance() + 1e-9, load) << skew;
    EXPECT_GE(routing.rank_load(8), 1) << skew;
    EXPECT_LE(routing.rank_load(8), routing.imbalance()) << skew;
    before = routing.distinct(32);
    load = routing.imbalance();
  }
}

// Tokens of one batch, each with 8 different of 256 experts: how many the busiest of 8 ranks of 32 reads.
uint64_t simulate(uint64_t tokens, uint64_t* draw) {
  std::set<uint64_t> touched;
  for (uint64_t t = 0; t < tokens; ++t) {
    std::set<uint64_t> mine;
    while (mine.size() < 8) mine.insert(random_bits(1, (*draw)++) % 256);
    touched.insert(mine.begin(), mine.end());
  }
  std::array<uint64_t, 8> ranks{};
  for (const uint64_t expert : touched) ++ranks[expert / 32];
  return *std::max_element(ranks.begin(), ranks.end());
}

TEST(Routing, the_busiest_rank_reads_more_than_its_share) {
  const Routing routing(256, 8);
  EXPECT_EQ(routing.busiest_share(5, 1), routing.share(5));
  uint64_t draw = 0;
  for (const uint64_t tokens : {1U, 4U, 32U, 200U}) {
    constexpr int kRuns = 2000;
    double sum = 0;
    for (int run = 0; run < kRuns; ++run) sum += static_cast<double>(simulate(tokens, &draw));
    const double most = routing.busiest_share(static_cast<double>(tokens), 8) * 32;
    EXPECT_NEAR(most, sum / kRuns, 0.04 * sum / kRuns) << tokens;
    EXPECT_GE(most, routing.distinct(static_cast<double>(tokens)) / 8);
  }
}

// The expectation of the largest of `ranks` binomial numbers of `held` trials, term by term in logarithms.
double largest(uint64_t held, double p, uint64_t ranks) {
  const auto n = static_cast<long double>(held);
  long double at_most = 0, expectation = 0;
  for (uint64_t i = 0; i < held; ++i) {
    const auto x = static_cast<long double>(i);
    at_most += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) +
                        x * std::log(static_cast<long double>(p)) + (n - x) * std::log1p(-static_cast<long double>(p)));
    expectation += 1 - std::pow(std::min(1.0L, at_most), static_cast<long double>(ranks));
  }
  return static_cast<double>(expectation);
}

TEST(Routing, the_busiest_of_two_ranks_by_hand) {
  // Two ranks of one expert each, half of them read: at least one is in 3 of 4 cases.
  EXPECT_NEAR(Routing(2, 1).busiest_share(1, 2), 0.75, 1e-12);
  // Ranks of two: 2 in 1 - (3/4)^2 of the cases, at least 1 in 1 - (1/4)^2.
  EXPECT_NEAR(Routing(4, 2).busiest_share(1, 2), (7.0 / 16 + 15.0 / 16) / 2, 1e-12);
}

// Of 448 experts a rank (Kimi-K3 on two) nearly all are read: none with a probability that no double holds.
TEST(Routing, many_experts_a_rank_are_as_exact_as_few) {
  for (const auto& [experts, chosen] : {std::pair{896U, 16U}, {256U, 8U}, {100'000U, 8U}, {16U, 1U}}) {
    const Routing routing(experts, chosen);
    for (const uint64_t ranks : {2U, 8U, 16U}) {
      const uint64_t held = experts / ranks;
      double before = 0;
      for (double tokens = 1; tokens < 1e6; tokens = std::ceil(tokens * 1.07)) {
        SCOPED_TRACE(::testing::Message() << experts << " experts, " << ranks << " ranks, " << tokens << " tokens");
        const double busiest = routing.busiest_share(tokens, ranks);
        const double mean = routing.share(tokens);
        EXPECT_GE(busiest, mean);
        EXPECT_LE(busiest, 1);
        EXPECT_GE(busiest, before - 1e-12);
        before = busiest;
        if (held > 1000 || mean >= 1) continue;
        EXPECT_NEAR(busiest * static_cast<double>(held), largest(held, mean, ranks), 1e-9 * static_cast<double>(held));
      }
    }
  }
  const Routing kimi(896, 16);
  EXPECT_NEAR(kimi.busiest_share(93, 2), kimi.busiest_share(92, 2), 0.004);
}

}  // namespace
}  // namespace nibble
