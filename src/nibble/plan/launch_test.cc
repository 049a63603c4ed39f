// What engines are told: no more memory and no fewer sequences than the plan has.
#include "nibble/plan/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;
using testing::thrown_error;

Plan kimi(ServingEngine engine, double reserve) {
  PlanRequest request;
  request.model = "kimi-k2.5";
  request.formats = {"released"};
  request.gpus = 8;
  request.tp = 4;
  request.dp = 2;
  request.ep = 8;
  request.concurrency = 9;
  request.reserve = reserve;
  request.engine = engine;
  return make_plan(request);
}

double number_behind(const std::string& text, const std::string& key) {
  const size_t at = text.find(key + ": ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + key.size() + 2));
}

TEST(Launch, shares_of_the_memory_leave_what_engines_take_outside) {
  for (const double reserve : {0.0, 0.05, 0.3}) {
    const Plan plan = kimi(ServingEngine::kSglang, reserve);
    ASSERT_TRUE(plan.fits);
    const MemoryPlan& memory = plan.chosen->memory;
    const auto capacity = static_cast<double>(memory.capacity);
    const double fixed = number_behind(launch_config(plan, ServingEngine::kSglang), "mem-fraction-static");
    EXPECT_GE(fixed * capacity, static_cast<double>(memory.weights + memory.kv));
    EXPECT_LE(fixed * capacity, static_cast<double>(memory.capacity - memory.activations - memory.workspace -
                                                    memory.communication - memory.graphs));
    const double all = number_behind(launch_config(plan, ServingEngine::kVllm), "gpu-memory-utilization");
    EXPECT_GE(all * capacity, static_cast<double>(memory.total() - memory.reserve - memory.graphs));
    EXPECT_LE(all * capacity, static_cast<double>(memory.capacity - memory.graphs));
  }
}

// Nine sequences over two groups: five of them on the fuller one.
TEST(Launch, sequences_are_those_of_the_fullest_group) {
  EXPECT_EQ(
      number_behind(launch_config(kimi(ServingEngine::kSglang, 0.3), ServingEngine::kSglang), "max-running-requests"),
      10);
  EXPECT_EQ(number_behind(launch_config(kimi(ServingEngine::kVllm, 0.3), ServingEngine::kVllm), "max-num-seqs"), 5);
}

TEST(Launch, processors_are_launched_by_none) {
  PlanRequest request;
  request.model = "gpt-oss-20b";
  request.gpu = "epyc9654";
  request.gpus = 1;
  const Plan plan = make_plan(request);
  ASSERT_TRUE(plan.fits);
  EXPECT_THAT(thrown_error([&] { launch_config(plan, ServingEngine::kVllm); }).message(), HasSubstr("are for GPUs"));
}

}  // namespace
}  // namespace nibble
