#include "nibble/ledger/routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

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

}  // namespace
}  // namespace nibble
