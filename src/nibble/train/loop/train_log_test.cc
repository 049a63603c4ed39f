#include "nibble/train/loop/train_log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nibble/testing/temp_dir.h"
#include "nibble/train/loop/step_progress.h"

namespace nibble {
namespace {

using testing::TempDir;

TEST(TrainLog, a_resumed_run_takes_out_what_lies_behind_its_state) {
  const TempDir dir;
  const Path path = dir.path() / "log.jsonl";
  {
    TrainLog log(path, 0);
    log.add({{"event", "baseline"}, {"step", 0}, {"loss", 3.5}});
    for (int step = 0; step < 6; ++step) log.add({{"event", "step"}, {"step", step}, {"loss", 6.0 - step}});
    log.add({{"event", "end"}, {"step", 6}});
    log.flush();
  }
  TrainLog log(path, 4);
  ASSERT_EQ(log.losses().size(), 4U);
  EXPECT_EQ(log.losses().back().loss, 3);
  ASSERT_NE(log.find("baseline"), nullptr);
  EXPECT_EQ((*log.find("baseline"))["loss"], 3.5);
  EXPECT_EQ(log.find("end"), nullptr);
  log.add({{"event", "step"}, {"step", 4}, {"loss", 0.5}});
  log.flush();
  EXPECT_EQ(TrainLog(path, 100).losses().size(), 5U);
  EXPECT_TRUE(TrainLog(path, 0).losses().empty());  // begins anew
}

TEST(LossCurve, has_a_point_for_each_of_few_steps_and_the_mean_of_many) {
  std::vector<TrainLog::Point> few;
  few.reserve(5);
  for (uint64_t step = 0; step < 5; ++step) few.push_back({step, 5.0 - static_cast<double>(step)});
  const std::string svg = loss_curve("a <name>", few);
  EXPECT_NE(svg.find("xmlns=\"http://www.w3.org/2000/svg\""), std::string::npos);
  EXPECT_NE(svg.find("<style>"), std::string::npos);
  EXPECT_NE(svg.find("step 5: 1"), std::string::npos);
  EXPECT_EQ(svg.find("<name>"), std::string::npos);  // escaped
  std::vector<TrainLog::Point> many;
  many.reserve(3000);
  for (uint64_t step = 0; step < 3000; ++step) many.push_back({step, step % 2 == 0 ? 1.0 : 3.0});
  size_t tips = 0;
  const std::string long_svg = loss_curve("run", many);
  for (size_t at = long_svg.find("step "); at != std::string::npos; at = long_svg.find("step ", at + 1)) ++tips;
  EXPECT_LE(tips, 66U);
  EXPECT_NE(long_svg.find("step 3,000: 2"), std::string::npos);  // the mean of the last ones
  EXPECT_TRUE(loss_curve("none", {}).empty());
}

TEST(StepProgress, foretells_by_the_pace_of_the_last_half_minute) {
  double now = 0;
  StepProgress progress([&] { return now; });
  EXPECT_EQ(progress.step(1, 100, 2.5), "step 1 of 100, loss 2.5");  // one time tells no pace
  now = 10;
  progress.step(2, 100, 2.5);
  now = 20;
  EXPECT_EQ(progress.step(3, 100, 2.5), "step 3 of 100, loss 2.5, 10 s a step, 16 min left");
  for (uint64_t done = 4; done < 60; ++done) {  // ten times quicker from here on
    now += 1;
    progress.step(done, 100, 2.5);
  }
  now += 1;
  EXPECT_EQ(progress.step(60, 100, 2.5), "step 60 of 100, loss 2.5, 1 s a step, 40 s left");
}

}  // namespace
}  // namespace nibble
