#include "nibble/train/loop/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/checkpoint/weight_table.h"
#include "nibble/engine/loaded_for_test.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"
#include "nibble/train/export/packed.h"
#include "nibble/train/model/dense_files.h"

namespace nibble {
namespace {

using testing::TempDir;
using testing::TinyCheckpoint;

struct Source {
  Checkpoint checkpoint;
  Findings findings;
  Model model;
  TrainedTensors tensors;
  explicit Source(const Path& path)
      : checkpoint(Checkpoint::open(path)),
        model(load_model(checkpoint, &findings)),
        tensors(*model.family, model.spec) {
    read_values(checkpoint, model, &tensors);
  }
};

TrainConfig config_for_test(uint64_t steps) {
  TrainConfig config;
  config.name = "test";
  config.data.task = "state-machine:symbols=8";
  config.data.sequence = 24;
  config.steps = steps;
  config.batch = 4;
  config.optimizer.learning_rate = 5e-3;
  config.balance_loss = 0.01;
  return config;
}

std::unique_ptr<TrainData> data_for_test() { return task_sequences(make_task("state-machine:symbols=8", 0), 24); }

RoundingConfig rounding_of(const std::string& format, const std::string& rule, const std::string& layout) {
  RoundingConfig rounding;
  rounding.format = parse_format(format);
  rounding.rule = rule.empty() ? default_rule(rounding.format) : parse_rule(rule, rounding.format);
  rounding.layout = layout;
  return rounding;
}

class FamilyForward : public ::testing::TestWithParam<const char*> {};

// Both multiply BF16 weights in float32 and differ in the order of sums alone.
TEST_P(FamilyForward, forward_is_the_engines) {
  const TempDir dir;
  const Source source(golden_models() / GetParam());
  write_dense(dir.path() / "bf16", source.checkpoint.config(), source.tensors);
  LoadedForTest engine(dir.path() / "bf16", exact_for_test());
  TrainedTensors tensors = source.tensors;
  const TrainConfig config = config_for_test(1);
  const auto data = data_for_test();
  const Trainer trainer(config, &tensors, nullptr, *data);
  const std::vector<TokenId> tokens = random_tokens_for_test(3, 150);  // more than one tile of attention
  const std::vector<float> got = trainer.logits(tokens), wanted = engine.logits(tokens);
  const double most = largest_difference(got, wanted);
  EXPECT_LT(most, 5e-5);
  RecordProperty("largest_difference", std::to_string(most));
}

INSTANTIATE_TEST_SUITE_P(All, FamilyForward, ::testing::Values("qwen3_moe", "llama", "mixtral", "gpt_oss"));

struct Case {
  const char* name;
  bool gpt_oss;
  const char *format, *rule, *layout;
};

class Exports : public ::testing::TestWithParam<Case> {};

// Decoded values of the packed checkpoint, in the order of the tensors.
std::vector<std::vector<float>> served_values(const Path& path) {
  const Source packed(path);
  std::vector<std::vector<float>> values;
  for (const TrainedTensor& tensor : packed.tensors.list()) values.push_back(tensor.values);
  return values;
}

TEST_P(Exports, served_bits_are_trained_bits) {
  const Case& one = GetParam();
  const TempDir dir;
  testing::TinyOptions options;
  options.hidden = 128;
  options.intermediate = 128;
  (one.gpt_oss ? TinyCheckpoint::gpt_oss(options) : TinyCheckpoint::qwen3_moe(options)).write(dir.path() / "in");
  Source source(dir.path() / "in");
  TrainConfig config = config_for_test(3);
  config.rounding = rounding_of(one.format, one.rule, one.layout);
  const auto data = data_for_test();
  Trainer trainer(config, &source.tensors, nullptr, *data);
  const std::vector<std::vector<float>> before = trainer.seen_values();
  for (int i = 0; i < 3; ++i) trainer.train_step();
  trainer.pull();
  export_dense(dir.path() / "dense", source.checkpoint.config(), {}, source.tensors);
  export_packed(dir.path() / "dense", dir.path() / "packed", source.tensors, *config.rounding, 2);
  const std::vector<std::vector<float>> seen = trainer.seen_values(), served = served_values(dir.path() / "packed");
  ASSERT_EQ(seen.size(), served.size());
  uint64_t moved = 0, rounded = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    const TrainedTensor& tensor = source.tensors.list()[i];
    expect_same_bits(seen[i], served[i], tensor.name);
    moved += before[i] != seen[i] ? 1U : 0U;
    rounded += tensor.role == Role::kRoutedExpert && seen[i] != tensor.values ? 1U : 0U;
  }
  EXPECT_GT(moved, seen.size() / 2);
  EXPECT_EQ(rounded, 4U);  // gate_up and down of two layers
}

INSTANTIATE_TEST_SUITE_P(
    All, Exports,
    ::testing::Values(Case{"int4", false, "int4-g32", "", ""}, Case{"int4_amax7", false, "int4-g64", "int4.amax7", ""},
                      Case{"mxfp4", false, "mxfp4", "mx.floor", ""}, Case{"nvfp4", false, "nvfp4", "", ""},
                      Case{"nvfp4_ct", false, "nvfp4", "nv.ct", "compressed-tensors"},
                      Case{"nvfp4_modelopt", false, "nvfp4", "nv.four_six", "modelopt"},
                      Case{"nvfp4_searched", false, "nvfp4", "mse.nv.two_level", ""},
                      Case{"fp8_block", false, "fp8-block", "", ""}, Case{"gpt_oss", true, "mxfp4", "", ""},
                      Case{"gpt_oss_nvfp4", true, "nvfp4", "", "modelopt"}),
    [](const auto& one) { return std::string(one.param.name); });

// Bits do not depend on how often a run was stopped: seven steps, and three, a file, and four.
TEST(Trainer, goes_on_where_it_stopped) {
  const TempDir dir;
  TinyCheckpoint::qwen3_moe().write(dir.path() / "in");
  for (const bool low_bit : {false, true}) {
    TrainConfig config = config_for_test(7);
    if (low_bit) config.rounding = rounding_of("int4-g32", "", "");
    const auto data = data_for_test();
    Source whole(dir.path() / "in"), first(dir.path() / "in"), second(dir.path() / "in");
    Trainer at_once(config, &whole.tensors, nullptr, *data);
    for (int i = 0; i < 7; ++i) at_once.train_step();
    Trainer begins(config, &first.tensors, nullptr, *data);
    for (int i = 0; i < 3; ++i) begins.train_step();
    const Path path = dir.path() / "state.safetensors";
    write_state(path, first.tensors, begins.state());
    Trainer goes_on(config, &second.tensors, nullptr, *data);
    goes_on.restore(read_state(path, second.tensors, config_fingerprint(config)));
    EXPECT_EQ(goes_on.step(), 3U);
    for (int i = 0; i < 4; ++i) goes_on.train_step();
    const TrainState wanted = at_once.state(), got = goes_on.state();
    EXPECT_EQ(got.step, 7U);
    for (size_t i = 0; i < wanted.masters.size(); ++i) {
      expect_same_bits(got.masters[i], wanted.masters[i], whole.tensors.list()[i].name);
      expect_same_bits(got.first[i], wanted.first[i], whole.tensors.list()[i].name);
      expect_same_bits(got.second[i], wanted.second[i], whole.tensors.list()[i].name);
    }
    config.seed = 1;
    EXPECT_THROW(read_state(path, second.tensors, config_fingerprint(config)), Error);
  }
}

TEST(Trainer, learns) {
  const TempDir dir;
  TinyCheckpoint::qwen3_moe().write(dir.path() / "in");
  Source source(dir.path() / "in");
  TrainConfig config = config_for_test(60);
  config.rounding = rounding_of("mxfp4", "", "");
  config.batch = 8;
  const auto data = data_for_test();
  Trainer trainer(config, &source.tensors, nullptr, *data);
  const double before = trainer.held_out_loss(16);
  EXPECT_NEAR(before, std::log(256.0), 0.3);  // the model's vocabulary; nothing is known
  for (int i = 0; i < 60; ++i) trainer.train_step();
  EXPECT_LT(trainer.held_out_loss(16), before / 2);  // it knows the symbols at least: log 8 is 0.37 of it
}

TEST(Trainer, trains_the_roles_that_it_is_told) {
  const TempDir dir;
  TinyCheckpoint::qwen3_moe().write(dir.path() / "in");
  Source source(dir.path() / "in");
  TrainConfig config = config_for_test(2);
  config.trained = {Role::kRoutedExpert};
  const auto data = data_for_test();
  const TrainedTensors before = source.tensors;
  Trainer trainer(config, &source.tensors, nullptr, *data);
  trainer.train_step();
  trainer.pull();
  for (size_t i = 0; i < before.list().size(); ++i) {
    const TrainedTensor &was = before.list()[i], &is = source.tensors.list()[i];
    EXPECT_EQ(was.values != is.values, was.role == Role::kRoutedExpert) << was.name;
  }
}

// A teacher that is the student leaves nothing to learn; another one's distributions are learnt.
TEST(Trainer, distils) {
  const TempDir dir;
  testing::TinyOptions other;
  other.deviation = 0.3;  // its distributions are far from even
  other.seed = 2;
  TinyCheckpoint::qwen3_moe().write(dir.path() / "student");
  TinyCheckpoint::qwen3_moe(other).write(dir.path() / "teacher");
  Source student(dir.path() / "student"), teacher(dir.path() / "teacher");
  TrainConfig config = config_for_test(60);
  config.objective = Objective::kDistill;
  config.rounding = rounding_of("int4-g32", "", "");
  const auto data = data_for_test();
  {
    TrainConfig exact = config_for_test(1);
    exact.objective = Objective::kDistill;
    const Trainer same(exact, &teacher.tensors, &teacher.tensors, *data);
    EXPECT_NEAR(same.held_out_loss(8), 0, 1e-7);
  }
  Trainer trainer(config, &student.tensors, &teacher.tensors, *data);
  const double before = trainer.held_out_loss(8);
  for (int i = 0; i < 60; ++i) trainer.train_step();
  EXPECT_LT(trainer.held_out_loss(8), 0.7 * before);
}

// The engine drew from the packed weights what the trainer computes: the difference is the order of sums. Choices with
// an advantage become more likely, the others less.
TEST(Trainer, policy_gradient_raises_what_was_better) {
  const TempDir dir;
  TinyCheckpoint::qwen3_moe().write(dir.path() / "in");
  Source source(dir.path() / "in");
  TrainConfig config = config_for_test(100);
  config.objective = Objective::kReinforce;
  config.rounding = rounding_of("int4-g32", "", "");
  config.optimizer.learning_rate = 1e-3;
  config.optimizer.schedule = ScheduleKind::kConstant;
  config.balance_loss = 0;
  const auto data = data_for_test();
  Trainer trainer(config, &source.tensors, nullptr, *data);
  export_dense(dir.path() / "dense", source.checkpoint.config(), {}, source.tensors);
  export_packed(dir.path() / "dense", dir.path() / "packed", source.tensors, *config.rounding, 2);
  const auto task = make_task("state-machine:symbols=8", 0);
  Rollouts rollouts = roll_out(dir.path() / "packed", *task, {4, 2, 12, 1}, 0, 1, 2);
  // Rewards of an untrained model are all alike; the first chain of each pair is called the better one.
  for (size_t i = 0; i < rollouts.advantages.size(); ++i) {
    if (rollouts.batch.labels[i] >= 0) rollouts.advantages[i] = i / rollouts.batch.length % 2 == 0 ? 1.0F : -1.0F;
  }
  const StepReport first = trainer.policy_step(rollouts);
  EXPECT_LT(first.log_prob_largest_gap, 1e-4);
  EXPECT_NEAR(first.loss, 0, 1e-4);  // ratios of one, advantages that cancel
  const StepReport second = trainer.policy_step(rollouts);
  EXPECT_LT(second.loss, -1e-3);
  EXPECT_GT(second.log_prob_mean_gap, first.log_prob_mean_gap);
}

TEST(Trainer, widths_that_are_no_multiple_of_the_group_are_refused) {
  const TempDir dir;
  TinyCheckpoint::qwen3_moe().write(dir.path() / "in");
  Source source(dir.path() / "in");
  TrainConfig config = config_for_test(1);
  config.rounding = rounding_of("int4-g64", "", "");
  const auto data = data_for_test();
  try {
    const Trainer trainer(config, &source.tensors, nullptr, *data);
    FAIL() << "begun";
  } catch (const Error& error) {
    EXPECT_EQ(error.tensor(), "model.layers.0.mlp.experts.down");
    EXPECT_NE(std::string(error.what()).find("width 32, group 64"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace nibble
