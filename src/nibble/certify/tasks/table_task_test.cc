// The rules of the three tasks. Numbers named "promised" were computed from the formulas in task.h by another program.
#include "nibble/certify/tasks/table_task.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

namespace nibble {
namespace {

using Tokens = std::vector<TokenId>;

constexpr const char* kAll[] = {"table-walk", "running-sum", "state-machine"};

// All entries of a table, asked with the shortest contexts there are.
std::vector<Tokens> table_of(const Task& task, TokenId name = -1) {
  const auto symbols = static_cast<TokenId>(task.options().symbols);
  std::vector<Tokens> table;
  for (TokenId a = 0; a < symbols; ++a) {
    Tokens& row = table.emplace_back();
    for (TokenId b = 0; b < symbols; ++b) {
      row.push_back(task.expected(name < 0 ? Tokens{a, b} : Tokens{name, a, b}).value_or(-1));
    }
  }
  return table;
}

TEST(TableTask, promised_draws) {
  const auto walk = make_task("table-walk:seed=7", 1);
  const Tokens first = {55, 24, 60, 6, 24, 38, 56, 28};
  const auto table = table_of(*walk);
  EXPECT_EQ(Tokens(table[0].begin(), table[0].begin() + 8), first);
  EXPECT_EQ(make_task("table-walk:seed=7,tables=4", 1)->expected(Tokens{67, 5, 9}), 63);
  EXPECT_EQ(walk->start(0), (Tokens{4, 62}));
  EXPECT_EQ(walk->start(5), (Tokens{27, 15}));
  const auto machine = make_task("state-machine:seed=7", 1);
  EXPECT_EQ(machine->start(5), (Tokens{27, 15}));
  const Tokens inputs = {39, 30, 53, 63};
  for (uint64_t step = 0; step < 4; ++step) EXPECT_EQ(machine->input(5, step), Tokens{inputs[step]});
  // A walk of four steps, by the same program.
  Tokens context = walk->start(5);
  for (int step = 0; step < 4; ++step) context.push_back(*walk->expected(context));
  EXPECT_EQ(context, (Tokens{27, 15, 40, 26, 44, 24}));
}

// Each symbol stands in a drawn table as often as chance has it: χ² with 63 degrees of freedom, five deviations.
TEST(TableTask, drawn_tables_are_uniform) {
  for (const char* text : {"table-walk:seed=1", "table-walk:seed=2", "state-machine:seed=1"}) {
    std::vector<double> counts(64);
    for (const Tokens& row : table_of(*make_task(text, 1))) {
      for (const TokenId entry : row) counts.at(static_cast<size_t>(entry)) += 1;
    }
    double squares = 0;
    for (const double count : counts) squares += (count - 64) * (count - 64) / 64;
    EXPECT_NEAR(squares, 63, 5 * std::sqrt(2 * 63.0)) << text;
  }
}

TEST(TableTask, tables_differ_by_seed_and_by_name) {
  const auto walk = make_task("table-walk:symbols=16,tables=3,seed=1", 1);
  std::set<std::vector<Tokens>> tables;
  for (const TokenId name : {16, 17, 18}) tables.insert(table_of(*walk, name));
  tables.insert(table_of(*make_task("table-walk:symbols=16,seed=2", 1)));
  EXPECT_EQ(tables.size(), 4U);
  // Table 0 of several is the one that is alone, and starts and inputs leave tables as they are.
  EXPECT_EQ(table_of(*walk, 16), table_of(*make_task("table-walk:symbols=16,seed=1", 99)));
}

TEST(TableTask, addition_is_addition_whatever_the_seed) {
  for (const char* text : {"running-sum:symbols=7", "running-sum:symbols=7,seed=3"}) {
    const auto table = table_of(*make_task(text, 1));
    for (TokenId a = 0; a < 7; ++a) {
      for (TokenId b = 0; b < 7; ++b) {
        TokenId sum = a;
        for (TokenId i = 0; i < b; ++i) sum = sum == 6 ? 0 : sum + 1;
        EXPECT_EQ(table[static_cast<size_t>(a)][static_cast<size_t>(b)], sum);
      }
    }
  }
}

// Long chains by the rule as a loop: the walk looks at its last two tokens, the others at state and input.
TEST(TableTask, chains_follow_the_rule) {
  for (const std::string name : kAll) {
    const auto task = make_task(name + ":symbols=11,seed=4", 8);
    const auto table = table_of(*task);
    for (uint64_t chain = 0; chain < 5; ++chain) {
      Tokens context = task->start(chain);
      ASSERT_EQ(context.size(), 2U);
      TokenId a = context[0], b = context[1];
      for (uint64_t step = 0; step < 100; ++step) {
        const TokenId next = table[static_cast<size_t>(a)][static_cast<size_t>(b)];
        ASSERT_EQ(task->expected(context), next) << name << " " << step;
        ASSERT_EQ(task->context_key(context), static_cast<uint64_t>(11 * a + b));
        const Tokens input = task->input(chain, step);
        ASSERT_EQ(input.size(), name == "table-walk" ? 0U : 1U);
        context.push_back(next);
        context.insert(context.end(), input.begin(), input.end());
        a = input.empty() ? b : next;
        b = input.empty() ? next : input[0];
      }
    }
  }
}

TEST(TableTask, chains_take_turns_with_tables) {
  for (const std::string name : {"table-walk", "state-machine"}) {
    const auto task = make_task(name + ":symbols=8,tables=3,seed=4", 8);
    for (uint64_t chain = 0; chain < 9; ++chain) {
      const Tokens start = task->start(chain);
      ASSERT_EQ(start.size(), 3U);
      EXPECT_EQ(start[0], static_cast<TokenId>(8 + chain % 3));
      const auto table = table_of(*task, start[0]);
      EXPECT_EQ(task->expected(start), table[static_cast<size_t>(start[1])][static_cast<size_t>(start[2])]);
    }
  }
}

// One key for each context, however long what stands before it.
TEST(TableTask, keys_are_table_a_b) {
  const auto walk = make_task("table-walk:symbols=5,tables=3", 1);
  std::set<uint64_t> keys;
  for (TokenId table = 5; table < 8; ++table) {
    for (TokenId a = 0; a < 5; ++a) {
      for (TokenId b = 0; b < 5; ++b) {
        const auto key = walk->context_key(Tokens{table, a, b});
        ASSERT_TRUE(key);
        EXPECT_EQ(walk->context_key(Tokens{table, 4, 0, 3, a, b}), key);
        EXPECT_EQ(walk->expected(Tokens{table, 4, 0, 3, a, b}), walk->expected(Tokens{table, a, b}));
        keys.insert(*key);
      }
    }
  }
  EXPECT_EQ(keys.size(), 75U);
}

void expect_nothing(const Task& task, const Tokens& context) {
  EXPECT_EQ(task.expected(context), std::nullopt) << task.name() << ", tokens " << context.size();
  EXPECT_EQ(task.context_key(context), std::nullopt) << task.name() << ", tokens " << context.size();
}

TEST(TableTask, nothing_is_right_behind_what_is_no_symbol) {
  for (const std::string name : kAll) {
    const auto task = make_task(name + ":symbols=6", 1);
    for (const Tokens& context :
         {Tokens{}, Tokens{1}, Tokens{1, 6}, Tokens{6, 1}, Tokens{-1, 1}, Tokens{1, INT32_MIN}, Tokens{1, INT32_MAX}}) {
      expect_nothing(*task, context);
    }
    // What is further back has been forgotten.
    EXPECT_EQ(task->expected(Tokens{6, -5, 2, 3}), task->expected(Tokens{2, 3}));
  }
  for (const std::string name : {"table-walk", "state-machine"}) {
    const auto task = make_task(name + ":symbols=6,tables=2", 1);
    for (const Tokens& context : {Tokens{}, Tokens{6}, Tokens{6, 1}, Tokens{1, 2, 3}, Tokens{8, 2, 3}, Tokens{6, 7, 1},
                                  Tokens{6, 1, 6}, Tokens{-1, 1, 1}}) {
      expect_nothing(*task, context);
    }
  }
}

TEST(TableTask, nothing_is_chosen_behind_a_state) {
  for (const std::string name : {"running-sum", "state-machine"}) {
    const auto one = make_task(name + ":symbols=6", 1);
    expect_nothing(*one, {1, 2, 3});
    EXPECT_TRUE(one->expected(Tokens{1, 2, 3, 4}));
  }
  const auto two = make_task("state-machine:symbols=6,tables=2", 1);
  expect_nothing(*two, {6, 1, 2, 3});
  EXPECT_TRUE(two->expected(Tokens{6, 1, 2, 3, 4}));
  EXPECT_TRUE(make_task("table-walk:symbols=6", 1)->expected(Tokens{1, 2, 3}));
}

// A sum goes on from what was written, right or wrong; a walk from its last two tokens.
TEST(TableTask, wrong_choices_are_gone_on_from) {
  const auto sum = make_task("running-sum:symbols=10", 1);
  EXPECT_EQ(sum->expected(Tokens{3, 4, 7, 5}), 2);
  EXPECT_EQ(sum->expected(Tokens{3, 4, 8, 5}), 3);
  const auto walk = make_task("table-walk:symbols=10", 1);
  EXPECT_EQ(walk->expected(Tokens{3, 4, 9}), table_of(*walk)[4][9]);
}

TEST(TableTask, starts_and_inputs_depend_on_seed_chain_and_step_alone) {
  const auto one = make_task("state-machine:symbols=4096", 1), again = make_task("state-machine:symbols=4096", 1);
  const auto other = make_task("state-machine:symbols=4096", 2);
  std::set<Tokens> starts, inputs;
  for (uint64_t chain = 0; chain < 20; ++chain) {
    EXPECT_EQ(one->start(chain), again->start(chain));
    starts.insert(one->start(chain));
    starts.insert(other->start(chain));
    Tokens forward, backward, others;
    for (uint64_t step = 0; step < 20; ++step) {
      forward.push_back(one->input(chain, step).at(0));
      backward.insert(backward.begin(), again->input(chain, 19 - step).at(0));
      others.push_back(other->input(chain, step).at(0));
    }
    EXPECT_EQ(forward, backward);
    inputs.insert(forward);
    inputs.insert(others);
  }
  EXPECT_EQ(starts.size(), 40U);
  EXPECT_EQ(inputs.size(), 40U);
}

// Equal seeds for tables and chains: starts and inputs are no entries of the table.
TEST(TableTask, tables_starts_and_inputs_are_unrelated) {
  const auto task = make_task("state-machine:symbols=4096,seed=1", 1);
  const Tokens start = task->start(0);
  int equal = 0;
  for (TokenId i = 0; i < 100; ++i) {
    const TokenId input = task->input(0, static_cast<uint64_t>(i)).at(0), entry = *task->expected(Tokens{0, i});
    equal += entry == input ? 1 : 0;
    if (i < 2 && (start.at(static_cast<size_t>(i)) == input || start.at(static_cast<size_t>(i)) == entry)) ++equal;
  }
  EXPECT_LE(equal, 1);  // by chance 100 in 4096
}

// Steps until a context recurs: sqrt(π / 2) V of them on average, as on any random function of V² points.
TEST(TableTask, walks_are_as_long_as_those_of_a_random_function) {
  constexpr uint64_t kWalks = 2000;
  double sum = 0, squares = 0;
  for (uint64_t seed = 0; seed < kWalks; ++seed) {
    const auto walk = make_task("table-walk:seed=" + std::to_string(seed), 1);
    Tokens context = walk->start(seed);
    std::set<uint64_t> seen;
    while (seen.insert(*walk->context_key(context)).second) context.push_back(*walk->expected(context));
    const auto steps = static_cast<double>(seen.size());
    sum += steps;
    squares += steps * steps;
  }
  const double mean = sum / kWalks, deviation = std::sqrt(squares / kWalks - mean * mean);
  EXPECT_NEAR(mean, std::sqrt(std::acos(-1.0) / 2) * 64, 4 * deviation / std::sqrt(double{kWalks}));
}

}  // namespace
}  // namespace nibble
