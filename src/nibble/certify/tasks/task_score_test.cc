#include "nibble/certify/tasks/task_score.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace nibble {
namespace {

using Tokens = std::vector<TokenId>;
using Chains = std::vector<TaskChain>;

const BootstrapOptions kNoBands{0, 0};

// A chain of `running-sum` over ten symbols by plain arithmetic; at steps of `wrong` it writes one too many.
TaskChain sum_chain(const Task& task, uint64_t chain, uint64_t steps, const std::set<uint64_t>& wrong) {
  TaskChain made{chain, {}, false};
  const Tokens start = task.start(chain);
  TokenId state = start.at(0), input = start.at(1);
  for (uint64_t step = 0; step < steps; ++step) {
    state = (state + input + (wrong.contains(step) ? 1 : 0)) % 10;
    input = task.input(chain, step).at(0);
    made.choices.push_back(state);
  }
  return made;
}

// Any task's chain; at steps of `wrong` it writes the symbol behind the right one.
TaskChain run_chain(const Task& task, uint64_t chain, uint64_t steps, const std::set<uint64_t>& wrong = {}) {
  TaskChain made{chain, {}, false};
  const auto symbols = static_cast<TokenId>(task.options().symbols);
  Tokens context = task.start(chain);
  for (uint64_t step = 0; step < steps; ++step) {
    const TokenId right = task.expected(context).value();
    made.choices.push_back(wrong.contains(step) ? (right + 1) % symbols : right);
    context.push_back(made.choices.back());
    const Tokens input = task.input(chain, step);
    context.insert(context.end(), input.begin(), input.end());
  }
  return made;
}

TEST(TaskScore, handmade_chains) {
  const auto task = make_task("running-sum:symbols=10", 3);
  Chains chains = {sum_chain(*task, 0, 8, {}), sum_chain(*task, 1, 8, {3}), sum_chain(*task, 2, 5, {}),
                   sum_chain(*task, 3, 4, {0})};
  chains[2].truncated = chains[3].truncated = true;
  const TaskScore score = score_task(*task, chains, 8, kNoBands);
  EXPECT_EQ(score.chains, 4U);
  EXPECT_EQ(score.steps, 25U);
  EXPECT_DOUBLE_EQ(score.single_step, 23.0 / 25);
  EXPECT_DOUBLE_EQ(score.mean_run, (8 + 3 + 5 + 0) / 4.0);
  EXPECT_EQ(score.whole, 1U);
  EXPECT_EQ(score.truncated, 2U);
  EXPECT_EQ(score.right_as_far, 1U);
  EXPECT_DOUBLE_EQ(score.whole_share, 0.25);
  EXPECT_DOUBLE_EQ(score.whole_share_of_complete, 0.5);
  EXPECT_DOUBLE_EQ(score.independent_prediction, std::pow(0.92, 8));
  EXPECT_EQ(score.cycles, 0U);
}

// Of 30 chains 10 end by length; 16 of the other 20 are right.
TEST(TaskScore, C83_truncation_stands_apart) {
  const auto task = make_task("running-sum:symbols=10", 3);
  Chains chains;
  for (uint64_t c = 0; c < 30; ++c) {
    const bool truncated = c % 3 == 0;
    const bool wrong = c % 3 == 1 && c < 12;  // 1, 4, 7, 10
    chains.push_back(sum_chain(*task, c, truncated ? 20 : 32, wrong ? std::set<uint64_t>{5} : std::set<uint64_t>{}));
    chains.back().truncated = truncated;
  }
  const TaskScore score = score_task(*task, chains, 32, {1000, 1});
  EXPECT_EQ(score.truncated, 10U);
  EXPECT_EQ(score.right_as_far, 10U);
  EXPECT_EQ(score.whole, 16U);
  EXPECT_NEAR(static_cast<double>(score.truncated) / static_cast<double>(score.chains), 0.333, 0.0005);
  EXPECT_NEAR(score.whole_share, 0.533, 0.0005);
  EXPECT_DOUBLE_EQ(score.whole_share_of_complete, 0.8);
  EXPECT_LT(score.whole_band.low, score.whole_share);
  EXPECT_GT(score.whole_band.high, score.whole_share);
}

// A limit may fall behind the last choice, and a chain that is too short was cut whether or not someone says so.
TEST(TaskScore, truncation_is_what_is_said_or_what_is_missing) {
  const auto task = make_task("running-sum:symbols=10", 3);
  Chains chains = {sum_chain(*task, 0, 8, {}), sum_chain(*task, 1, 7, {}), sum_chain(*task, 2, 0, {})};
  chains[0].truncated = true;
  const TaskScore score = score_task(*task, chains, 8, kNoBands);
  EXPECT_EQ(score.truncated, 3U);
  EXPECT_EQ(score.right_as_far, 3U);
  EXPECT_EQ(score.whole, 0U);
  EXPECT_EQ(score.whole_share_of_complete, 0);
  EXPECT_DOUBLE_EQ(score.mean_run, 5);
  EXPECT_EQ(score.single_step, 1);
}

// A model that ends its chain chose a token where a symbol was right; a limit chooses none.
TEST(TaskScore, an_end_token_is_a_wrong_choice) {
  const auto task = make_task("running-sum:symbols=10", 3);
  Chains chains = {sum_chain(*task, 0, 5, {}), sum_chain(*task, 1, 5, {})};
  chains[0].choices.push_back(10);
  chains[0].truncated = chains[1].truncated = true;
  const TaskScore score = score_task(*task, chains, 8, kNoBands);
  EXPECT_DOUBLE_EQ(score.single_step, 10.0 / 11);
  EXPECT_EQ(score.mean_run, 5);
  EXPECT_EQ(score.truncated, 2U);
  EXPECT_EQ(score.right_as_far, 1U);
}

TEST(TaskScore, nothing_gives_zeros) {
  const auto task = make_task("table-walk", 1);
  for (const Chains& chains : {Chains{}, Chains{{0, {}, true}}}) {
    const TaskScore score = score_task(*task, chains, 8, {100, 1});
    EXPECT_EQ(score.steps, 0U);
    for (const double value :
         {score.single_step, score.standard_error, score.mean_run, score.whole_share, score.whole_share_of_complete,
          score.independent_prediction, score.whole_band.low, score.whole_band.high}) {
      EXPECT_EQ(value, 0);
    }
    EXPECT_EQ(score.contexts + score.end_contexts + score.cycles, 0U);
  }
}

// A name of a table or an unknown token is wrong, and so is every choice whose rule meets it, whatever it is: the next
// two of a walk, the next one of a sum.
TEST(TaskScore, tokens_that_are_no_symbols) {
  const auto walk = make_task("table-walk", 1);
  for (const TokenId foreign : {TokenId{64}, TokenId{-1}, TokenId{1 << 30}}) {
    TaskChain chain = run_chain(*walk, 7, 12);
    chain.choices[4] = foreign;
    // From here on the chain is right again by what it has written itself.
    for (size_t step = 7; step < 12; ++step) {
      chain.choices[step] = walk->expected(Tokens{chain.choices[step - 2], chain.choices[step - 1]}).value();
    }
    const TaskScore score = score_task(*walk, Chains{chain}, 12, kNoBands);
    EXPECT_DOUBLE_EQ(score.single_step, 9.0 / 12);
    EXPECT_EQ(score.mean_run, 4);
    EXPECT_EQ(score.whole, 0U);
    EXPECT_EQ(score.contexts, 10U);  // the two that held it are none of the task's
  }
  const auto sum = make_task("running-sum:symbols=10", 1);
  TaskChain chain = sum_chain(*sum, 7, 12, {});
  chain.choices[4] = 10;
  const TaskScore score = score_task(*sum, Chains{chain}, 12, kNoBands);
  // Step 5 stands behind the token and has no right answer; step 6 goes on from step 5 and is right.
  EXPECT_DOUBLE_EQ(score.single_step, 10.0 / 12);
  EXPECT_EQ(score.mean_run, 4);
}

TEST(TaskScore, choices_are_judged_by_the_context_that_the_model_made) {
  for (const std::string name : {"table-walk", "running-sum", "state-machine:tables=2"}) {
    const auto task = make_task(name, 2);
    const TaskScore score = score_task(*task, Chains{run_chain(*task, 1, 30, {4, 20})}, 30, kNoBands);
    EXPECT_DOUBLE_EQ(score.single_step, 28.0 / 30) << name;
    EXPECT_EQ(score.mean_run, 4) << name;
  }
}

// Contexts by a loop over what stood before each choice.
TEST(TaskScore, contexts_touched) {
  const auto task = make_task("table-walk:symbols=5,tables=2", 2);
  Chains chains;
  std::set<Tokens> all, end;
  for (const uint64_t steps : {1U, 2U, 3U, 4U, 5U, 11U, 20U, 1U, 40U}) {
    const uint64_t chain = chains.size();
    chains.push_back(run_chain(*task, chain, steps, {6, 13}));
    Tokens tokens = task->start(chain);
    const Tokens& choices = chains.back().choices;
    tokens.insert(tokens.end(), choices.begin(), choices.end());
    const uint64_t quarter = std::max<uint64_t>((steps + 3) / 4, 1);
    for (uint64_t step = 0; step < steps; ++step) {
      const Tokens context = {tokens[0], tokens[step + 1], tokens[step + 2]};
      all.insert(context);
      if (step >= steps - quarter) end.insert(context);
    }
  }
  const TaskScore score = score_task(*task, chains, 40, kNoBands);
  EXPECT_EQ(score.contexts, all.size());
  EXPECT_EQ(score.end_contexts, end.size());
  EXPECT_LT(end.size(), all.size());
}

// A right walk's tail and period by remembering every context, and from them the length at which a circle was gone
// round again, sixteen steps at least.
TEST(TaskScore, cycles_are_those_of_the_walk) {
  uint64_t found = 0, missed = 0;
  for (const std::string symbols : {"3", "8", "30"}) {
    const auto task = make_task("table-walk:symbols=" + symbols, 2);
    for (uint64_t chain = 0; chain < 30; ++chain) {
      std::map<std::pair<TokenId, TokenId>, uint64_t> first;
      const Tokens start = task->start(chain);
      TokenId a = start[0], b = start[1];
      uint64_t step = 0;
      for (; first.emplace(std::pair(a, b), step).second; ++step) a = std::exchange(b, *task->expected(Tokens{a, b}));
      const uint64_t tail = first.at({a, b}), period = step - tail;
      const uint64_t needed = tail + period + std::max<uint64_t>(period, 16);
      for (const uint64_t length : {uint64_t{10}, uint64_t{40}, needed - 1, needed, needed + 1, needed + 50}) {
        const uint64_t expected = length >= needed ? 1 : 0;
        const Chains chains = {run_chain(*task, chain, length)};
        ASSERT_EQ(score_task(*task, chains, length, kNoBands).cycles, expected) << symbols << " " << length;
        (expected == 1 ? found : missed) += 1;
      }
      // The last choice is in no context; one that leaves the circle before is.
      const uint64_t length = needed + 10;
      EXPECT_EQ(score_task(*task, Chains{run_chain(*task, chain, length, {length - 1})}, length, kNoBands).cycles, 1U);
      EXPECT_EQ(score_task(*task, Chains{run_chain(*task, chain, length, {length - 2})}, length, kNoBands).cycles, 0U);
    }
  }
  EXPECT_GT(found, 200U);
  EXPECT_GT(missed, 100U);
}

TEST(TaskScore, random_inputs_make_no_cycle) {
  for (const char* name : {"running-sum:symbols=3", "state-machine:symbols=3", "running-sum"}) {
    const auto task = make_task(name, 2);
    Chains chains;
    for (uint64_t chain = 0; chain < 300; ++chain) chains.push_back(run_chain(*task, chain, 100));
    EXPECT_EQ(score_task(*task, chains, 100, kNoBands).cycles, 0U) << name;
  }
}

// The same token for ever is no context of the task, and not a circle of contexts.
TEST(TaskScore, what_is_no_context_makes_no_cycle) {
  const auto task = make_task("table-walk", 1);
  const TaskScore score = score_task(*task, Chains{{0, Tokens(100, 64), false}}, 100, kNoBands);
  EXPECT_EQ(score.cycles, 0U);
  EXPECT_EQ(score.contexts, 1U);
  EXPECT_EQ(score.single_step, 0);
}

// Clusters of one size: the standard error of their mean.
TEST(TaskScore, standard_error_over_chains) {
  const auto task = make_task("running-sum:symbols=10", 3);
  const std::vector<std::set<uint64_t>> wrong = {{}, {1}, {2, 5}, {}, {0, 1, 2, 3, 4}, {9}};
  Chains chains;
  double mean = 0, squares = 0;
  for (uint64_t c = 0; c < wrong.size(); ++c) {
    chains.push_back(sum_chain(*task, c, 10, wrong[c]));
    mean += (1 - 0.1 * static_cast<double>(wrong[c].size())) / 6;
  }
  for (const auto& steps : wrong) squares += std::pow(1 - 0.1 * static_cast<double>(steps.size()) - mean, 2);
  const TaskScore score = score_task(*task, chains, 10, kNoBands);
  EXPECT_NEAR(score.single_step, mean, 1e-12);
  EXPECT_NEAR(score.standard_error, std::sqrt(squares / 5 / 6), 1e-12);
  // One cluster, whether of one chain or of one chain's number.
  EXPECT_EQ(score_task(*task, std::span(chains).subspan(2, 1), 10, kNoBands).standard_error, 0);
  EXPECT_EQ(score_task(*task, Chains{chains[2], sum_chain(*task, 2, 10, {1})}, 10, kNoBands).standard_error, 0);
}

// Chains of one table stand together: 3 clusters of 7 chains of unlike lengths.
TEST(TaskScore, standard_error_over_tables) {
  const auto task = make_task("state-machine:symbols=12,tables=3", 3);
  const std::vector<std::pair<uint64_t, std::set<uint64_t>>> made = {{10, {1}}, {10, {}}, {4, {0, 1}},    {10, {5, 6}},
                                                                     {7, {}},   {10, {}}, {10, {2, 3, 4}}};
  Chains chains;
  double steps[3] = {}, right[3] = {};
  for (uint64_t c = 0; c < made.size(); ++c) {
    chains.push_back(run_chain(*task, c, made[c].first, made[c].second));
    steps[c % 3] += static_cast<double>(made[c].first);
    right[c % 3] += static_cast<double>(made[c].first - made[c].second.size());
  }
  const double all = steps[0] + steps[1] + steps[2], mean = (right[0] + right[1] + right[2]) / all;
  double squares = 0;
  for (int t = 0; t < 3; ++t) squares += std::pow(right[t] - mean * steps[t], 2);
  const TaskScore score = score_task(*task, chains, 10, kNoBands);
  EXPECT_NEAR(score.single_step, 53.0 / 61, 1e-12);
  EXPECT_NEAR(score.standard_error, std::sqrt(1.5 * squares) / all, 1e-12);
}

// The error of single_step over many sets of chains is what the standard error says.
TEST(TaskScore, standard_error_is_the_spread_of_repeats) {
  const auto task = make_task("running-sum:symbols=10", 3);
  constexpr uint64_t kRepeats = 300, kChains = 40;
  double sum = 0, squares = 0, stated = 0;
  for (uint64_t repeat = 0; repeat < kRepeats; ++repeat) {
    Chains chains;
    for (uint64_t c = 0; c < kChains; ++c) {
      // Half of the chains are wrong at every step that an input below 3 names, the others never: far from
      // independent choices.
      std::set<uint64_t> wrong;
      const uint64_t chain = repeat * kChains + c;
      for (uint64_t step = 0; step < 10; ++step) {
        if (task->start(chain)[0] < 5 && task->input(chain, step)[0] < 3) wrong.insert(step);
      }
      chains.push_back(sum_chain(*task, chain, 10, wrong));
    }
    const TaskScore score = score_task(*task, chains, 10, kNoBands);
    sum += score.single_step / kRepeats;
    squares += score.single_step * score.single_step / kRepeats;
    stated += score.standard_error / kRepeats;
  }
  EXPECT_NEAR(sum, 0.85, 0.005);
  EXPECT_NEAR(stated / std::sqrt(squares - sum * sum), 1, 0.15);  // a spread of 300 repeats is known to 4 %
}

TEST(TaskScore, band_of_the_share_of_whole_chains) {
  const auto task = make_task("running-sum:symbols=10", 3);
  Chains chains;
  for (uint64_t c = 0; c < 400; ++c)
    chains.push_back(sum_chain(*task, c, 5, c % 4 == 0 ? std::set<uint64_t>{2} : std::set<uint64_t>{}));
  const TaskScore score = score_task(*task, chains, 5, {2000, 7});
  EXPECT_DOUBLE_EQ(score.whole_share, 0.75);
  const double half = 1.96 * std::sqrt(0.75 * 0.25 / 400);  // 0.042
  EXPECT_NEAR(score.whole_band.low, 0.75 - half, 0.008);
  EXPECT_NEAR(score.whole_band.high, 0.75 + half, 0.008);
  const TaskScore none = score_task(*task, chains, 5, kNoBands);
  EXPECT_EQ(none.whole_band.low, 0.75);
  EXPECT_EQ(none.whole_band.high, 0.75);
}

// Two tables of four are known, two are not: a hundred chains are four draws, and a resample without either kind is
// one in sixteen.
TEST(TaskScore, band_draws_tables_and_not_their_chains) {
  const auto task = make_task("state-machine:symbols=12,tables=4", 3);
  Chains chains;
  for (uint64_t c = 0; c < 100; ++c)
    chains.push_back(run_chain(*task, c, 5, c % 4 < 2 ? std::set<uint64_t>{} : std::set<uint64_t>{0}));
  const TaskScore score = score_task(*task, chains, 5, {2000, 7});
  EXPECT_DOUBLE_EQ(score.whole_share, 0.5);
  EXPECT_EQ(score.whole_band.low, 0);
  EXPECT_EQ(score.whole_band.high, 1);
}

// Choices that are wrong one by one: as many whole chains as the prediction has. Wrong ones in few chains: far more.
TEST(TaskScore, independent_prediction) {
  const auto task = make_task("running-sum:symbols=10", 3);
  Chains scattered, together;
  for (uint64_t c = 0; c < 2000; ++c) {
    std::set<uint64_t> wrong;
    for (uint64_t step = 0; step < 10; ++step) {
      if (task->input(c + 5000, step)[0] == 0) wrong.insert(step);
    }
    scattered.push_back(sum_chain(*task, c, 10, wrong));
    together.push_back(
        sum_chain(*task, c, 10, c % 10 == 0 ? std::set<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9} : std::set<uint64_t>{}));
  }
  const TaskScore apart = score_task(*task, scattered, 10, kNoBands);
  EXPECT_NEAR(apart.independent_prediction, std::pow(0.9, 10), 0.015);
  EXPECT_NEAR(apart.whole_share, apart.independent_prediction, 4 * std::sqrt(0.35 * 0.65 / 2000));
  const TaskScore clustered = score_task(*task, together, 10, kNoBands);
  EXPECT_DOUBLE_EQ(clustered.independent_prediction, std::pow(0.9, 10));
  EXPECT_DOUBLE_EQ(clustered.whole_share, 0.9);
}

}  // namespace
}  // namespace nibble
