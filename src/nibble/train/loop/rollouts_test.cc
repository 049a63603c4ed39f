#include "nibble/train/loop/rollouts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

TEST(Rollouts, advantages_are_standardised_within_a_group) {
  const std::vector<double> advantages = group_advantages({1, 0, 0.5, 0.5, 0.25, 0.25}, 2);
  ASSERT_EQ(advantages.size(), 6U);
  EXPECT_NEAR(advantages[0], 0.5 / (0.5 + 1e-4), 1e-12);
  EXPECT_NEAR(advantages[1], -advantages[0], 1e-12);
  for (size_t i = 2; i < 6; ++i) EXPECT_EQ(advantages[i], 0);  // equal rewards teach nothing
}

TEST(Rollouts, chains_hold_what_was_drawn_and_rewards_what_was_right) {
  const testing::TempDir dir;
  testing::TinyCheckpoint::qwen3_moe().write(dir.path() / "in");
  const auto task = make_task("state-machine:symbols=256", 0);
  const RolloutOptions options{3, 4, 10, 1};
  const Rollouts one = roll_out(dir.path() / "in", *task, options, 5, 7, 2);
  EXPECT_EQ(one.batch.rows, 12U);
  EXPECT_EQ(one.batch.length, 2U + 10 * 2);
  double right = 0;
  for (uint64_t row = 0; row < 12; ++row) {
    uint64_t choices = 0;
    const auto* tokens = one.batch.tokens.data() + row * 22;
    for (uint64_t i = 0; i < 22; ++i) {
      const TokenId label = one.batch.labels[row * 22 + i];
      if (label < 0) continue;
      ++choices;
      if (i + 1 < 22) {
        EXPECT_EQ(label, tokens[i + 1]);
      }
      EXPECT_LT(one.log_probs[row * 22 + i], 0);
      right += task->expected(std::span(tokens, i + 1)) == label ? 1.0 : 0.0;
    }
    EXPECT_EQ(choices, 10U);
  }
  EXPECT_NEAR(one.reward, right / 120, 1e-12);
  // Chains of a group begin alike and go on apart; groups begin apart; another round is other chains.
  const auto row = [&](const Rollouts& of, uint64_t r) {
    return std::vector<TokenId>(of.batch.tokens.begin() + static_cast<ptrdiff_t>(r * 22),
                                of.batch.tokens.begin() + static_cast<ptrdiff_t>(r * 22 + 22));
  };
  EXPECT_EQ(row(one, 0)[0], row(one, 3)[0]);
  EXPECT_NE(row(one, 0), row(one, 3));
  EXPECT_NE(row(one, 0)[0], row(one, 4)[0]);
  EXPECT_NE(one.batch.tokens, roll_out(dir.path() / "in", *task, options, 6, 7, 2).batch.tokens);
  EXPECT_EQ(one.batch.tokens, roll_out(dir.path() / "in", *task, options, 5, 7, 1).batch.tokens);
}

}  // namespace
}  // namespace nibble
