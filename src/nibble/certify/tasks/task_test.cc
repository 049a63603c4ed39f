#include "nibble/certify/tasks/task.h"

#include <gtest/gtest.h>

#include <string>

#include "nibble/base/error.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using testing::thrown_error;
using testing::value_of;

Error refusal(const std::string& text) {
  return thrown_error([&] { make_task(text, 1); });
}

TEST(Task, names) {
  const std::vector<std::string_view> names = {"table-walk", "running-sum", "state-machine"};
  EXPECT_EQ(task_names(), names);
  for (const std::string_view name : names) {
    const auto task = make_task(name, 5);
    EXPECT_EQ(task->name(), name);
    EXPECT_EQ(task->options().symbols, 64U);
    EXPECT_EQ(task->options().tables, 1U);
    EXPECT_EQ(task->options().table_seed, 0U);
    EXPECT_EQ(task->options().chain_seed, 5U);
    EXPECT_EQ(task->vocabulary(), 64U);  // one table has no name
  }
}

TEST(Task, options) {
  const auto task = make_task("state-machine:symbols=10,tables=4,seed=18446744073709551615", 3);
  EXPECT_EQ(task->name(), "state-machine");
  EXPECT_EQ(task->options().symbols, 10U);
  EXPECT_EQ(task->options().tables, 4U);
  EXPECT_EQ(task->options().table_seed, UINT64_MAX);
  EXPECT_EQ(task->options().chain_seed, 3U);
  EXPECT_EQ(task->vocabulary(), 14U);
  EXPECT_EQ(make_task("table-walk:seed=7", 1)->options().table_seed, 7U);
  EXPECT_EQ(make_task("table-walk:seed=7", 1)->options().symbols, 64U);
}

TEST(Task, unknown_names_are_answered_with_the_nearest) {
  const Error walk = refusal("table-wlak:symbols=8");
  EXPECT_EQ(walk.message(), "no task has this name");
  EXPECT_EQ(value_of(walk, "name"), "table-wlak");
  EXPECT_EQ(value_of(walk, "task"), "table-wlak:symbols=8");
  const std::vector<std::string> ways = {"did you mean table-walk?",
                                         "use one of table-walk, running-sum, state-machine"};
  EXPECT_EQ(walk.ways_out(), ways);
  EXPECT_EQ(refusal("runing_sum").ways_out().front(), "did you mean running-sum?");
  EXPECT_EQ(refusal("statemachine").ways_out().front(), "did you mean state-machine?");
  // Nothing near: the list alone.
  EXPECT_EQ(refusal("gsm8k").ways_out(), std::vector<std::string>{ways.back()});
  EXPECT_EQ(refusal("").message(), "no task has this name");
  EXPECT_EQ(refusal("table-walk,symbols=8").message(), "no task has this name");
  EXPECT_EQ(refusal(" table-walk").message(), "no task has this name");
}

TEST(Task, unknown_options_are_answered_with_the_nearest) {
  const Error error = refusal("table-walk:symbol=8");
  EXPECT_EQ(error.message(), "tasks have no such option");
  EXPECT_EQ(value_of(error, "option"), "symbol");
  EXPECT_EQ(value_of(error, "task"), "table-walk:symbol=8");
  const std::vector<std::string> ways = {"did you mean symbols?", "use one of symbols, tables, seed"};
  EXPECT_EQ(error.ways_out(), ways);
  EXPECT_EQ(refusal("table-walk:=8").message(), "tasks have no such option");
  EXPECT_EQ(refusal("table-walk:chain_seed=8").message(), "tasks have no such option");
}

TEST(Task, options_are_keys_and_whole_numbers) {
  for (const char* text : {"table-walk:", "table-walk:symbols", "table-walk:seed=1,", "table-walk:,seed=1"}) {
    EXPECT_EQ(refusal(text).message(), "a task's option is not written KEY=NUMBER") << text;
  }
  for (const char* word : {"", "x", "-1", "+8", "8x", "8.0", "1e2", "0x10", " 8", "8=8", "18446744073709551616"}) {
    const Error error = refusal(std::string("table-walk:symbols=") + word);
    EXPECT_EQ(error.message(), "a task's option is not a whole number below 2^64") << word;
    EXPECT_EQ(value_of(error, "symbols"), word);
  }
}

TEST(Task, an_option_twice_is_refused_with_both_values) {
  const Error error = refusal("table-walk:symbols=8,tables=2,symbols=9");
  EXPECT_EQ(error.message(), "a task's option is given twice: symbols");
  EXPECT_EQ(value_of(error, "first"), "8");
  EXPECT_EQ(value_of(error, "second"), "9");
  EXPECT_EQ(refusal("table-walk:seed=1,seed=1").message(), "a task's option is given twice: seed");
}

TEST(Task, too_few_symbols_or_tables) {
  for (const char* symbols : {"0", "1"}) {
    const Error error = refusal(std::string("running-sum:symbols=") + symbols);
    EXPECT_EQ(error.message(), "a task needs two symbols at least: with fewer no step can be wrong");
    EXPECT_EQ(value_of(error, "symbols"), symbols);
  }
  const Error error = refusal("table-walk:tables=0");
  EXPECT_EQ(error.message(), "a task needs one table at least");
  EXPECT_EQ(value_of(error, "tables"), "0");
  EXPECT_EQ(make_task("table-walk:symbols=2", 1)->vocabulary(), 2U);
}

TEST(Task, more_entries_than_the_limit) {
  // 8192² = 2^26, and 4096² · 4.
  EXPECT_EQ(make_task("table-walk:symbols=8192", 1)->vocabulary(), 8192U);
  EXPECT_EQ(make_task("table-walk:symbols=4096,tables=4", 1)->vocabulary(), 4100U);
  EXPECT_EQ(make_task("table-walk:symbols=2,tables=16777216", 1)->vocabulary(), 16777218U);
  const Error one = refusal("running-sum:symbols=8193");
  EXPECT_EQ(one.message(), "more entries of tables than any model learns");
  EXPECT_EQ(value_of(one, "symbols"), "8193");
  EXPECT_EQ(value_of(one, "entries"), "67125249");
  EXPECT_EQ(value_of(one, "at_most"), "67108864");
  EXPECT_EQ(one.ways_out(), std::vector<std::string>{"symbols=8192 or fewer"});
  const Error five = refusal("table-walk:symbols=4096,tables=5");
  EXPECT_EQ(value_of(five, "entries"), "83886080");
  // 3663² · 5 = 67087845, 3664² · 5 = 67124480.
  const std::vector<std::string> ways = {"symbols=3663 or fewer", "fewer tables"};
  EXPECT_EQ(five.ways_out(), ways);
  // Products that wrap around: 2^32 squared is 2^64, and 2^33 squared is 2^66, both 0 in 64 bits.
  for (const char* symbols : {"4294967296", "8589934592", "18446744073709551615"}) {
    const Error error = refusal(std::string("table-walk:symbols=") + symbols);
    EXPECT_EQ(value_of(error, "symbols"), symbols);
    EXPECT_EQ(value_of(error, "entries"), "2^64 or more");
  }
  const Error tables = refusal("table-walk:symbols=2,tables=4611686018427387904");  // 2^62 · 4
  EXPECT_EQ(value_of(tables, "entries"), "2^64 or more");
  EXPECT_EQ(tables.ways_out(), std::vector<std::string>{"fewer tables"});
}

TEST(Task, addition_is_one_table) {
  const Error error = refusal("running-sum:tables=4");
  EXPECT_EQ(error.message(), "running-sum has one table, addition");
  EXPECT_EQ(value_of(error, "tables"), "4");
  EXPECT_EQ(make_task("running-sum:tables=1,seed=9", 1)->options().table_seed, 9U);
}

}  // namespace
}  // namespace nibble
