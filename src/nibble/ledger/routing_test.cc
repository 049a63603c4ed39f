#include "nibble/ledger/routing.h"

#include <gtest/gtest.h>

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
    before = routing.distinct(32);
    load = routing.imbalance();
  }
}

}  // namespace
}  // namespace nibble
