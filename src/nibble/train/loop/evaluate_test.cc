#include "nibble/train/loop/evaluate.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace nibble {
namespace {

Evaluation of(double loss, double single_step, double error, double mean_run) {
  Evaluation evaluation;
  evaluation.loss = loss;
  evaluation.chains.emplace();
  evaluation.chains->single_step = single_step;
  evaluation.chains->standard_error = error;
  evaluation.chains->mean_run = mean_run;
  return evaluation;
}

TEST(Compare, loss_and_single_steps_decide) {
  const Evaluation before = of(0.003, 0.98, 0.003, 200);
  EXPECT_FALSE(compare(before, of(0.003, 0.98, 0.004, 200)).worse);
  EXPECT_FALSE(compare(before, of(0.002, 0.9701, 0.004, 200)).worse);  // two errors of 0.005 are 0.01
  EXPECT_TRUE(compare(before, of(0.002, 0.9699, 0.004, 200)).worse);
  EXPECT_TRUE(compare(before, of(0.0031, 0.99, 0.004, 250)).worse);
  EXPECT_FALSE(compare(before, of(0.002, 0.985, 0.004, 10)).worse);  // runs rest on few contexts
  EXPECT_TRUE(compare(before, of(std::numeric_limits<double>::quiet_NaN(), 1, 0, 256)).worse);
}

TEST(Compare, evaluations_come_back_from_the_log) {
  Evaluation evaluation = of(0.25, 0.5, 0.125, 12.5);
  evaluation.chains->chains = 7;
  evaluation.chains->whole = 3;
  const Evaluation back = evaluation_of(evaluation_json(evaluation));
  EXPECT_EQ(back.loss, 0.25);
  EXPECT_EQ(back.chains->single_step, 0.5);
  EXPECT_EQ(back.chains->standard_error, 0.125);
  EXPECT_EQ(back.chains->mean_run, 12.5);
  EXPECT_EQ(back.chains->chains, 7U);
  EXPECT_EQ(back.chains->whole, 3U);
}

}  // namespace
}  // namespace nibble
