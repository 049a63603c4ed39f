#include "nibble/train/data/train_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "nibble/base/error.h"
#include "nibble/base/file.h"
#include "nibble/certify/tasks/task_data.h"
#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

TEST(TaskSequences, are_the_tasks_by_number) {
  const auto data = task_sequences(make_task("state-machine:symbols=8", 5), 20);
  const auto task = make_task("state-machine:symbols=8", 5);
  const SequenceBatch batch = data->batch(6, 3);
  ASSERT_EQ(batch.tokens.size(), 60U);
  const std::vector<TokenId> second = training_sequence(*task, 7, 20);
  EXPECT_TRUE(std::equal(second.begin(), second.end(), batch.tokens.begin() + 20));
  const std::vector<TokenId> wanted = labels(*task, second);
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), batch.labels.begin() + 20));
  EXPECT_EQ(data->vocabulary(), 8U);
  const SequenceBatch held = data->held_out_batch(0, 1);
  EXPECT_FALSE(std::equal(held.tokens.begin(), held.tokens.end(), data->batch(0, 1).tokens.begin()));
}

std::vector<TokenText> counting_text(TokenId count) {
  TokenText text;
  for (TokenId i = 0; i < count; ++i) text.tokens.push_back(i);
  return {text};
}

// Every token but the first is asked for exactly once in a round, counting what is held out.
TEST(WindowSequences, ask_for_every_token_once) {
  const auto data = window_sequences(counting_text(1000), {16, 5, 9});
  std::map<TokenId, int> asked;
  uint64_t windows = 0;
  const auto count = [&](const SequenceBatch& batch) {
    ++windows;
    for (size_t i = 0; i < batch.labels.size(); ++i) {
      if (batch.labels[i] < 0) continue;
      EXPECT_EQ(batch.labels[i], batch.tokens[i] + 1);
      ++asked[batch.labels[i]];
    }
  };
  std::set<TokenId> held;
  for (uint64_t i = 0; i < data->held_out(); ++i) {
    held.insert(data->held_out_batch(i, 1).tokens[0]);
    count(data->held_out_batch(i, 1));
  }
  const uint64_t training = 63 - data->held_out();  // ceil(999 / 16) windows
  std::set<TokenId> first_round;
  for (uint64_t i = 0; i < training; ++i) {
    first_round.insert(data->batch(i, 1).tokens[0]);
    count(data->batch(i, 1));
  }
  EXPECT_EQ(windows, 63U);
  ASSERT_EQ(asked.size(), 999U);
  EXPECT_TRUE(std::ranges::all_of(asked, [](const auto& one) { return one.second == 1; }));
  EXPECT_EQ(first_round.size(), training);
  for (const TokenId begin : held) EXPECT_FALSE(first_round.contains(begin));
  // The second round has the same windows in another order.
  std::vector<TokenId> once, twice;
  for (uint64_t i = 0; i < training; ++i) {
    once.push_back(data->batch(i, 1).tokens[0]);
    twice.push_back(data->batch(training + i, 1).tokens[0]);
  }
  EXPECT_NE(once, twice);
  std::ranges::sort(once);
  std::ranges::sort(twice);
  EXPECT_EQ(once, twice);
}

TEST(WindowSequences, do_not_depend_on_what_was_read_before) {
  const auto all = window_sequences(counting_text(500), {16, 5, 9});
  const auto late = window_sequences(counting_text(500), {16, 5, 9});
  (void)all->batch(0, 90);
  EXPECT_EQ(all->batch(47, 2).tokens, late->batch(47, 2).tokens);
}

TEST(WindowSequences, chains_ask_for_what_was_chosen) {
  const testing::TempDir dir;
  std::string lines;
  for (int i = 0; i < 4; ++i) {
    lines += R"({"prompt": [7, 8], "answer": [1, 2, 3], "given": [1]})"
             "\n";
  }
  write_atomically(dir.path() / "chains.jsonl", lines);
  const auto data = window_sequences(texts_of_chains(dir.path() / "chains.jsonl"), {6, 2, 0});
  const SequenceBatch batch = data->batch(0, 1);
  EXPECT_EQ(batch.tokens, (std::vector<TokenId>{7, 8, 1, 2, 3, 0}));
  EXPECT_EQ(batch.labels, (std::vector<TokenId>{-1, 1, -1, 3, -1, -1}));
}

TEST(WindowSequences, one_window_is_too_few) {
  EXPECT_THROW(window_sequences(counting_text(10), {16, 5, 9}), Error);
  EXPECT_NO_THROW(window_sequences(counting_text(20), {16, 5, 9}));
}

}  // namespace
}  // namespace nibble
