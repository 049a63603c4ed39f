#include "nibble/train/experiments/table_walk.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "nibble/base/json.h"
#include "nibble/certify/tasks/task.h"
#include "nibble/train/answer.h"
#include "nibble/train/experiments/table_walk_report.h"

namespace nibble {
namespace {

TableWalkOptions small_options() {
  TableWalkOptions options;
  options.shape = {.symbols = 8, .embedding = 16, .hidden = 64};
  options.full_steps = 200;
  options.qat_steps = 60;
  options.chains = 50;
  options.length = 32;
  options.schemes = {fake_quant_named("int4-g32", "int4.amax7")};
  return options;
}

std::vector<int64_t> right_choices(const TableWalkOptions& options, uint64_t seed) {
  const auto task = make_task("table-walk:symbols=8,seed=" + std::to_string(seed), 0);
  std::vector<int64_t> choices;
  for (TokenId older = 0; older < options.shape.symbols; ++older) {
    for (TokenId newer = 0; newer < options.shape.symbols; ++newer)
      choices.push_back(task->expected(std::vector<TokenId>{older, newer}).value());
  }
  return choices;
}

TEST(TableWalk, AllRight) {
  const TableWalkOptions options = small_options();
  const WalkScore score = score_walk(options, 3, right_choices(options, 3));
  EXPECT_EQ(score.single_step, 1);
  EXPECT_EQ(score.free_running_step, 1);
  EXPECT_EQ(score.mean_run, 32);
  EXPECT_EQ(score.whole, 1);
}

// Every choice one symbol too high: no step is right. One such entry: chains that meet it break there, others do not.
TEST(TableWalk, WrongEntriesCount) {
  const TableWalkOptions options = small_options();
  const std::vector<int64_t> right = right_choices(options, 3);
  std::vector<int64_t> wrong = right;
  for (int64_t& choice : wrong) choice = (choice + 1) % 8;
  const WalkScore none = score_walk(options, 3, wrong);
  EXPECT_EQ(none.single_step, 0);
  EXPECT_EQ(none.mean_run, 0);
  EXPECT_EQ(none.whole, 0);
  double whole = 0;
  for (size_t entry = 0; entry < right.size(); ++entry) {
    std::vector<int64_t> one = right;
    one[entry] = wrong[entry];
    const WalkScore score = score_walk(options, 3, one);
    EXPECT_EQ(score.single_step, 63.0 / 64);
    EXPECT_EQ(score.mean_run == 32, score.whole == 1);
    whole += score.whole / 64;
  }
  EXPECT_GT(whole, 0.3);
  EXPECT_LT(whole, 1);
}

TEST(TableWalk, SmallOneLearnsTheTableAndKeepsItInFourBits) {
  const TableWalkOptions options = small_options();
  uint64_t shown = 0;
  const auto show = [&](const std::string&) { ++shown; };
  const TableWalkOutcome outcome = run_table_walk(options, 1, show);
  EXPECT_EQ(outcome.full.single_step, 1);
  EXPECT_EQ(outcome.full.mean_run, 32);
  ASSERT_EQ(outcome.schemes.size(), 1u);
  EXPECT_EQ(outcome.schemes[0].qat.single_step, 1);
  EXPECT_EQ(outcome.schemes[0].qat.whole, 1);
  EXPECT_DOUBLE_EQ(outcome.schemes[0].independent_prediction, std::pow(outcome.schemes[0].ptq.single_step, 32));
  EXPECT_GT(shown, 4u);
  const TableWalkOutcome again = run_table_walk(options, 1, show);
  EXPECT_EQ(again.schemes[0].ptq.single_step, outcome.schemes[0].ptq.single_step);
}

// Rounding a network that has hardly learnt anything does not help it; training does.
TEST(TableWalk, StepsMatter) {
  TableWalkOptions options = small_options();
  options.full_steps = 1;
  options.qat_steps = 150;
  const TableWalkOutcome outcome = run_table_walk(options, 2, [](const std::string&) {});
  EXPECT_LT(outcome.full.single_step, 0.5);
  EXPECT_GT(outcome.schemes[0].qat.single_step, 0.9);
}

TEST(TableWalk, ReportsMedianAndSpread) {
  const TableWalkOptions options = small_options();
  std::vector<TableWalkOutcome> outcomes;
  for (const double step : {0.5, 0.75, 1.0}) {
    TableWalkOutcome outcome;
    outcome.seed = outcomes.size();
    outcome.full = {.single_step = step, .free_running_step = step, .mean_run = 32 * step, .whole = step};
    outcome.schemes.push_back({options.schemes[0], outcome.full, outcome.full, step * step, 1});
    outcome.seconds = 2;
    outcomes.push_back(outcome);
  }
  const std::string text = table_walk_text(options, outcomes);
  EXPECT_NE(text.find("75.00 (50.00 to 100.00)"), std::string::npos) << text;
  EXPECT_NE(text.find("24 (16 to 32)"), std::string::npos) << text;
  EXPECT_NE(text.find("56.2 (25.0 to 100.0)"), std::string::npos) << text;
  const Json json = parse_json(table_walk_json(options, outcomes), "json");
  EXPECT_EQ(json.at("seeds").size(), 3u);
  EXPECT_EQ(json.at("seeds")[1].at("ptq").at("single_step"), 0.75);
  EXPECT_EQ(json.at("seeds")[2].at("schemes")[0].at("format"), "int4-g32");
  EXPECT_EQ(json.at("seconds"), 6);
}

TEST(Answer, RequestsThatCannotBeAreAnswers) {
  const auto error = [](const char* request) { return parse_json(answer_request(request, {}), "answer").at("error"); };
  EXPECT_NE(error("{").at("message"), "");
  EXPECT_EQ(error(R"({"kind": "nothing"})").at("values")[0], Json::array({"asked", "nothing"}));
  EXPECT_NE(error(R"({"kind": "nothing"})").at("ways_out")[0].get<std::string>().find("table-walk"), std::string::npos);
  EXPECT_EQ(error(R"({"kind": "table-walk", "seeds": 0})").at("values")[0], Json::array({"seeds", "0"}));
  EXPECT_EQ(error(R"({"kind": "table-walk", "schemes": [3]})").at("values")[0], Json::array({"scheme", "3"}));
  EXPECT_NE(error(R"({"kind": "table-walk", "schemes": ["int4-g128"], "full_steps": 1, "seeds": 1})")
                .at("message")
                .get<std::string>()
                .find("block of 128"),
            std::string::npos);
}

}  // namespace
}  // namespace nibble
