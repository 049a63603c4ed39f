// One of everything, added from outside: see README.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "nibble/certify/tasks/task_row.h"
#include "nibble/certify/tasks/task_score.h"
#include "nibble/kernels/select.h"
#include "nibble/models/model.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"
#include "nibble/verify/rule.h"
#include "nibble/verify/verify.h"

namespace nibble {
namespace {

using ::testing::Contains;
using ::testing::Field;

TEST(Canary, StandsInEveryList) {
  const auto names = [](const auto& list, auto name) {
    std::vector<std::string> all;
    for (const auto* row : list) all.emplace_back(name(*row));
    return all;
  };
  EXPECT_THAT(names(format_families(), [](const auto& row) { return row.pattern; }), Contains("canary"));
  EXPECT_THAT(names(scale_rules(), [](const auto& row) { return row.name; }), Contains("canary.amax"));
  EXPECT_THAT(names(conventions(), [](const auto& row) { return row.name(); }), Contains("canary"));
  EXPECT_THAT(names(families(), [](const auto& row) { return row.name(); }), Contains("canary_moe"));
  EXPECT_THAT(names(kernels(), [](const auto& row) { return row.name; }), Contains("canary"));
  EXPECT_THAT(names(rules(), [](const auto& row) { return row.name; }), Contains("canary-sings"));
  EXPECT_THAT(names(task_rows(), [](const auto& row) { return row.name; }), Contains("canary-sum"));
}

// It is chosen where it can run, and gives the reference's bits.
TEST(Canary, Multiplies) {
  const WeightLayout layout = choose_layout(parse_format("f32"), 16, 32).layout.value();
  alignas(64) float tile[16 * 32];
  alignas(64) float x[32];
  for (int i = 0; i < 16 * 32; ++i) tile[i] = static_cast<float>(i % 37) - 18;
  for (int i = 0; i < 32; ++i) x[i] = 1 / static_cast<float>(i + 3);
  const ResidentMatrix matrix{layout, reinterpret_cast<const std::byte*>(tile), 1};
  PanelTask task;
  task.weights = &matrix;
  task.group_end = 1;
  task.tokens = 1;
  task.out_stride = 16;
  task.f32 = {x, 1, 32};
  float wanted[16], got[16];
  task.out = wanted;
  choose_kernel(layout, ActivationKind::kF32, "reference").panel(layout)(task);
  task.out = got;
  const Kernel& kernel = choose_kernel(layout, ActivationKind::kF32);
  EXPECT_EQ(kernel.name, "canary");
  kernel.panel(layout)(task);
  EXPECT_THAT(got, ::testing::ElementsAreArray(wanted));
}

// It is found by its name, and chains are scored by its rule.
TEST(Canary, IsATask) {
  const std::unique_ptr<Task> task = make_task("canary-sum:symbols=10", 1);
  EXPECT_EQ(task->expected(std::vector<TokenId>{3, 4}), 8);
  std::vector<TokenId> context = task->start(0);
  TaskChain chain;
  for (int step = 0; step < 5; ++step) {
    chain.choices.push_back(*task->expected(context));
    context.push_back(chain.choices.back());
  }
  EXPECT_EQ(score_task(*task, std::vector<TaskChain>{chain}, 5, {}).whole, 1u);
  chain.choices[2] += 1;
  EXPECT_EQ(score_task(*task, std::vector<TaskChain>{chain}, 5, {}).mean_run, 2);
}

// The tiny checkpoint of the tests, as a model of the canary's family.
void write_source(const Path& folder) {
  testing::TinyCheckpoint tiny = testing::TinyCheckpoint::qwen3_moe();
  tiny.config()["model_type"] = "canary_moe";
  tiny.config()["architectures"] = {"CanaryMoeForCausalLM"};
  tiny.rename(".mlp.", ".canary.");
  for (const char* norm : {"*.q_norm.weight", "*.k_norm.weight"}) {
    for (const std::string& name : tiny.matching(norm)) tiny.drop(name);
  }
  tiny.write(folder);
}

TEST(Canary, QuantizesVerifiesAndReadsBack) {
  const testing::TempDir dir;
  write_source(dir / "source");

  QuantizeRequest request;
  request.source = dir / "source";
  request.target = dir / "target";
  request.format = parse_writable_format("canary");
  request.rule = default_rule(request.format);
  request.layout = "canary";
  request.quiet = true;
  const QuantizeResult result = quantize(request);
  EXPECT_EQ(result.family, "canary_moe");
  EXPECT_EQ(result.layout, "canary");
  EXPECT_EQ(result.rule, "canary.amax");
  size_t quantized = 0;
  for (const QuantizeRow& row : result.tensors) {
    EXPECT_EQ(row.action == "quantized", row.role == "routed_expert") << row.name;
    if (row.action != "quantized") continue;
    ++quantized;
    EXPECT_GT(row.rel_rmse, 0.05);
    EXPECT_LT(row.rel_rmse, 0.2);
  }
  EXPECT_EQ(quantized, 2u * 4u * 3u);

  VerifyOptions options;
  options.against = dir / "source";
  options.quiet = true;
  const VerifyReport report = verify(dir / "target", options);
  EXPECT_TRUE(report.ok);
  for (const Finding& finding : report.findings) {
    EXPECT_NE(finding.severity, Severity::kError) << finding.rule << ": " << finding.message << " " << finding.tensor;
  }
  EXPECT_THAT(report.findings, Contains(Field(&Finding::rule, "canary-sings")));
  size_t compared = 0;
  for (const AgainstRow& row : report.against) compared += row.format == "canary" ? 1u : 0u;
  EXPECT_EQ(compared, quantized);

  const Checkpoint checkpoint = Checkpoint::open(dir / "target");
  EXPECT_TRUE(checkpoint.config()["quantization_config"]["quant_method"] == "canary");
}

}  // namespace
}  // namespace nibble
