#include "nibble/certify/tasks/task_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace nibble {
namespace {

using Tokens = std::vector<TokenId>;

// Computed from the formulas in task.h and task_data.h by another program.
TEST(TaskData, promised_sequences) {
  EXPECT_EQ(training_sequence(*make_task("table-walk", 1), 3, 8), (Tokens{18, 31, 46, 31, 41, 0, 3, 62}));
  // Sums of 18 + 31, then of inputs 16, 33, 4, 5.
  EXPECT_EQ(training_sequence(*make_task("running-sum", 1), 3, 10), (Tokens{18, 31, 49, 16, 1, 33, 34, 4, 38, 5}));
  EXPECT_EQ(training_sequence(*make_task("table-walk:tables=5", 1), 3, 4), (Tokens{65, 18, 31, 46}));
}

TEST(TaskData, of_the_asked_length_and_one_another_s_beginning) {
  for (const std::string_view name : task_names()) {
    const auto task = make_task(name, 1);
    const Tokens whole = training_sequence(*task, 9, 41);
    for (uint64_t length = 0; length <= 41; ++length) {
      const Tokens part = training_sequence(*task, 9, length);
      EXPECT_EQ(part, Tokens(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length))) << name << " " << length;
    }
  }
}

// No circle: the tokens of a walk's sequences are uniform, by χ² over pairs of neighbours (4095 degrees of freedom).
TEST(TaskData, walks_are_taught_over_the_whole_table) {
  const auto task = make_task("table-walk", 1);
  std::vector<double> counts(4096);
  constexpr uint64_t kStreams = 200, kLength = 513;
  for (uint64_t stream = 0; stream < kStreams; ++stream) {
    const Tokens tokens = training_sequence(*task, stream, kLength);
    for (size_t i = 1; i < kLength; ++i) {
      const TokenId pair = 64 * tokens[i - 1] + tokens[i];
      counts.at(static_cast<size_t>(pair)) += 1;
    }
  }
  constexpr double kEach = kStreams * (kLength - 1) / 4096.0;
  double squares = 0;
  for (const double count : counts) squares += (count - kEach) * (count - kEach) / kEach;
  EXPECT_NEAR(squares, 4095, 5 * std::sqrt(2 * 4095.0));
}

TEST(TaskData, labels_of_a_walk_are_entries_of_the_last_two) {
  const auto task = make_task("table-walk:symbols=9,seed=3", 1);
  const Tokens tokens = training_sequence(*task, 1, 50);
  const Tokens wanted = labels(*task, tokens);
  ASSERT_EQ(wanted.size(), 50U);
  EXPECT_EQ(wanted[0], -1);
  int as_written = 0;
  for (size_t i = 1; i < 50; ++i) {
    EXPECT_EQ(wanted[i], task->expected(Tokens{tokens[i - 1], tokens[i]}));
    as_written += i + 1 < 50 && wanted[i] == tokens[i + 1] ? 1 : 0;
  }
  EXPECT_LT(as_written, 20);  // the tokens are drawn: one in nine is right
}

TEST(TaskData, chains_with_inputs_are_right_throughout) {
  for (const std::string name :
       {"running-sum:symbols=9", "state-machine:symbols=9", "state-machine:symbols=9,tables=4"}) {
    const auto task = make_task(name, 1);
    const size_t first = task->options().tables > 1 ? 1 : 0;
    const Tokens tokens = training_sequence(*task, 2, 61);
    const Tokens wanted = labels(*task, tokens);
    ASSERT_EQ(wanted.size(), 61U);
    for (size_t i = 0; i < 61; ++i) {
      const bool behind_input = i > first && (i - first) % 2 == 1;
      if (behind_input) {
        EXPECT_EQ(wanted[i], i + 1 < 61 ? tokens[i + 1] : task->expected(tokens)) << name << " " << i;
      } else {
        EXPECT_EQ(wanted[i], -1) << name << " " << i;
      }
    }
  }
}

TEST(TaskData, tokens_that_are_no_symbols_have_no_label) {
  const auto task = make_task("table-walk:symbols=9", 1);
  const Tokens wanted = labels(*task, Tokens{1, 2, 9, 3, 4});
  EXPECT_NE(wanted[1], -1);
  EXPECT_EQ(wanted[2], -1);
  EXPECT_EQ(wanted[3], -1);
  EXPECT_NE(wanted[4], -1);
  EXPECT_TRUE(labels(*task, {}).empty());
}

// Chains that are scored, and sequences, streams and seeds among themselves.
TEST(TaskData, no_sequence_twice) {
  std::set<Tokens> seen;
  for (const uint64_t seed : {1U, 2U}) {
    const auto task = make_task("running-sum:symbols=4096", seed);
    for (uint64_t stream = 0; stream < 50; ++stream) {
      seen.insert(training_sequence(*task, stream, 8));
      Tokens scored = task->start(stream);
      while (scored.size() < 8) {
        const uint64_t step = scored.size() / 2 - 1;
        scored.push_back(*task->expected(scored));
        scored.push_back(task->input(stream, step).at(0));
      }
      seen.insert(scored);
    }
  }
  EXPECT_EQ(seen.size(), 200U);
}

TEST(TaskData, tables_take_turns) {
  const auto task = make_task("table-walk:symbols=8,tables=3", 1);
  std::vector<int> counts(3);
  for (uint64_t stream = 0; stream < 30; ++stream) {
    ++counts.at(static_cast<size_t>(training_sequence(*task, stream, 10).front() - 8));
  }
  EXPECT_EQ(counts, (std::vector<int>{10, 10, 10}));
}

}  // namespace
}  // namespace nibble
