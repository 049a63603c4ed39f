#include "nibble/train/loop/schedule.h"

#include <gtest/gtest.h>

namespace nibble {
namespace {

// torch.optim.lr_scheduler.OneCycleLR(max_lr=3e-3, total_steps=10), its rates by step (pct_start 0.3, cosine,
// div_factor 25, final_div_factor 1e4): the closed form, worked out by hand at the places where cosines are known.
TEST(Schedule, one_cycle) {
  OptimizerConfig optimizer;
  optimizer.learning_rate = 3e-3;
  const auto rate = [&](uint64_t step) { return learning_rate(optimizer, step, 10); };
  EXPECT_NEAR(rate(0), 1.2e-4, 1e-15);                       // 3e-3 / 25
  EXPECT_NEAR(rate(1), (3e-3 + 1.2e-4) / 2, 1e-15);          // half the way up: 0.3 · 10 - 1 = 2 steps
  EXPECT_NEAR(rate(2), 3e-3, 1e-15);                         // the top
  EXPECT_NEAR(rate(9), 1.2e-8, 1e-15);                       // 3e-3 / 25 / 1e4
  EXPECT_NEAR(rate(2) + rate(9), rate(5) + rate(6), 1e-12);  // the fall is symmetric about its middle
  EXPECT_GT(rate(3), rate(4));
}

TEST(Schedule, constant_and_short_runs) {
  OptimizerConfig optimizer;
  optimizer.schedule = ScheduleKind::kConstant;
  EXPECT_EQ(learning_rate(optimizer, 7, 10), 1e-3);
  optimizer.schedule = ScheduleKind::kOneCycle;
  EXPECT_EQ(learning_rate(optimizer, 0, 1), 1e-3);
  for (uint64_t step = 0; step < 2; ++step) {
    EXPECT_GT(learning_rate(optimizer, step, 2), 0);
    EXPECT_LE(learning_rate(optimizer, step, 2), 1e-3);
  }
}

}  // namespace
}  // namespace nibble
