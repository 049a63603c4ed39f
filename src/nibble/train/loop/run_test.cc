#include "nibble/train/loop/run.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"
#include "nibble/train/loop/train_log.h"
#include "nibble/verify/verify.h"

namespace nibble {
namespace {

using testing::TempDir;

TrainRequest request_for(const Path& source, const Path& out, uint64_t steps, double rate) {
  TrainRequest request;
  TrainConfig& config = request.config;
  config.name = "test";
  config.source = source;
  config.data.task = "running-sum:symbols=8";
  config.data.sequence = 24;
  config.steps = steps;
  config.batch = 8;
  config.optimizer.learning_rate = rate;
  config.checkpoint_every = 2;
  config.evaluate = {16, 20, 8, 0};
  config.rounding.emplace();
  config.rounding->format = parse_format("int4-g32");
  config.rounding->rule = default_rule(config.rounding->format);
  request.out = out;
  request.threads = 2;
  return request;
}

std::vector<std::byte> bytes_of(const Path& path) {
  const Checkpoint file = Checkpoint::open(path);
  std::vector<std::byte> all;
  for (const StoredTensor& tensor : file.tensors()) {
    const std::vector<std::byte> one = file.read_all(tensor);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

TEST(RunTraining, stopped_and_resumed_it_exports_the_same_and_verify_accepts_it) {
  const TempDir dir;
  testing::TinyCheckpoint::qwen3_moe().write(dir.path() / "in");
  const TrainRequest whole = request_for(dir.path() / "in", dir.path() / "whole", 12, 5e-3);
  const TrainOutcome outcome = run_training(whole, {});
  EXPECT_TRUE(outcome.finished);
  ASSERT_TRUE(outcome.baseline && outcome.trained && outcome.packed);
  EXPECT_LT(*outcome.trained->loss, *outcome.baseline->loss);
  EXPECT_EQ(outcome.trained->chains->chains, 16U);

  TrainRequest part = request_for(dir.path() / "in", dir.path() / "part", 12, 5e-3);
  part.stop_after = 5;
  EXPECT_FALSE(run_training(part, {}).finished);
  EXPECT_THROW(run_training(part, {}), Error);  // a run is there already
  part.resume = true;
  part.stop_after = 0;
  const TrainOutcome resumed = run_training(part, {});
  EXPECT_TRUE(resumed.finished);
  EXPECT_EQ(resumed.baseline->loss, outcome.baseline->loss);  // out of the log
  EXPECT_EQ(bytes_of(*resumed.packed), bytes_of(*outcome.packed));
  EXPECT_EQ(bytes_of(*resumed.dense), bytes_of(*outcome.dense));

  VerifyOptions options;
  options.against = *outcome.dense;
  options.rederive = true;
  options.quiet = true;
  EXPECT_TRUE(verify(*outcome.packed, options).ok);

  const TrainLog log(dir.path() / "part" / "log.jsonl", 100);
  ASSERT_EQ(log.losses().size(), 12U);
  for (uint64_t step = 0; step < 12; ++step) EXPECT_EQ(log.losses()[step].step, step);
  EXPECT_NE(read_text(dir.path() / "part" / "loss.svg", 1 << 20).find("<polyline"), std::string::npos);
}

// A rate that tears the weights apart: the end is worse than rounding the beginning was.
TEST(RunTraining, worse_than_rounding_without_training_is_not_exported) {
  const TempDir dir;
  testing::TinyCheckpoint::qwen3_moe().write(dir.path() / "in");
  TrainRequest good = request_for(dir.path() / "in", dir.path() / "good", 40, 5e-3);
  const TrainOutcome trained = run_training(good, {});
  TrainRequest bad = request_for(*trained.dense, dir.path() / "bad", 6, 3);
  bad.config.optimizer.schedule = ScheduleKind::kConstant;
  try {
    run_training(bad, {});
    FAIL() << "exported";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--allow-worse"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "bad" / "packed"));
  EXPECT_TRUE(std::filesystem::exists(dir.path() / "bad" / "dense"));
  bad.resume = bad.allow_worse = true;
  EXPECT_TRUE(run_training(bad, {}).packed);
}

TEST(RunTraining, what_does_not_fit_is_refused_before_a_step) {
  const TempDir dir;
  testing::TinyCheckpoint::qwen3_moe().write(dir.path() / "in");
  TrainRequest request = request_for(dir.path() / "in", dir.path() / "out", 4, 1e-3);
  request.config.data.task = "running-sum:symbols=300";  // the vocabulary has 256
  EXPECT_THROW(run_training(request, {}), Error);
  request.config.data.task = "running-sum:symbols=8";
  request.config.data.sequence = 1000;  // of 512 positions
  EXPECT_THROW(run_training(request, {}), Error);
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "out"));
}

}  // namespace
}  // namespace nibble
