// Layouts of real models whose caches, steps and exchanges were counted from the outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "nibble/plan/plan.h"

namespace nibble {
namespace {

PlanRequest request_for(const std::string& model, const std::string& format, uint64_t gpus) {
  PlanRequest request;
  request.model = model;
  request.formats = {format};
  request.gpus = gpus;
  return request;
}

// MiniMax-M3 at 131,072 tokens: 60 layers of 4 heads of 128 twice, a head a GPU, and 57 indexers' keys of 128 on each.
TEST(LayoutPlans, indexers_keys_lie_on_every_gpu) {
  PlanRequest request = request_for("minimax-m3", "mxfp4", 8);
  request.tp = 4;
  request.dp = 2;
  request.concurrency = 2;
  request.context = 131072;
  const Plan plan = make_plan(request);
  ASSERT_TRUE(plan.chosen);
  EXPECT_EQ(plan.chosen->memory.kv, 16'106'127'360U / 4 + 1'912'602'624U);
  EXPECT_EQ(plan.chosen->step.kv_bytes, 1'044'381'696.0 / 4 + 1'912'602'624.0);
}

// Eight copies of the model, one sequence each, are one GPU with one.
TEST(LayoutPlans, copies_of_experts_are_as_quick_as_one_gpu) {
  PlanRequest request = request_for("qwen3-30b-a3b", "mxfp4", 8);
  request.tp = request.ep = 1;
  request.dp = 8;
  request.context = 1024;
  const LayoutPlan copies = *make_plan(request).chosen;
  EXPECT_NEAR(copies.step.total(), 0.734e-3, 0.0005e-3);
  EXPECT_NEAR(copies.step.weight_bytes, 3.42e9, 0.005e9);
  EXPECT_NEAR(copies.tokens_per_second, 10'899, 1);
  request.formats = {"int4-g32"};
  const Plan four = make_plan(request);
  EXPECT_NEAR(four.prefill[3].time.total(), 71.89e-3, 0.005e-3);
  request.gpus = 1;
  request.dp = 1;
  const Plan one = make_plan(request);
  ASSERT_EQ(one.prefill[3].tokens, 8192U);
  EXPECT_EQ(four.prefill[3].time.total(), one.prefill[3].time.total());
  // So does the choice of arithmetic: of eight tokens one meets each copy.
  EXPECT_EQ(four.schemes.choices[1].tokens, 8U);
  EXPECT_EQ(four.schemes.choices[1].times[3].seconds, one.schemes.choices[0].times[3].seconds);
  EXPECT_EQ(four.schemes.choices.back().times[3].seconds, one.schemes.choices.back().times[3].seconds);
}

// 80 layers of Ling-1T over 64 GPUs: a query head, a key and a value head of 128 each, and their part of the output.
TEST(LayoutPlans, fused_keys_and_values_are_copied) {
  PlanRequest request = request_for("ling-1t", "mxfp4", 64);
  request.gpu = "b300";
  request.tp = request.ep = 64;
  request.concurrency = 1;
  const Plan plan = make_plan(request);
  EXPECT_EQ(plan.chosen->memory.by_role[static_cast<size_t>(Role::kAttention)], (3 * 128 + 128) * 8192 * 2 * 80);
}

// 122 all-reduces of 8,192 x 7,168 values in 16 bits over two machines: 15/16 of the bytes twice over 450 GB/s, and
// four latencies.
TEST(LayoutPlans, all_reduces_between_machines_use_every_card) {
  PlanRequest request = request_for("kimi-k2.5", "released", 16);
  request.tp = 16;
  request.ep = 1;
  const Plan plan = make_plan(request);
  EXPECT_NEAR(plan.prefill[3].time.exchange, 122 * (1.875 * 8192 * 7168 * 2 / 450e9 + 14e-6), 1e-6);
}

// DeepSeek-V3.1 on 8 H200s, 128 tokens a GPU, experts cut over the 4 GPUs of each of two ranks: a token's 8 choices
// fall on 2 (1 - 2^-8) ranks, and it lies on one GPU of the 8. 58 layers, there and back.
TEST(LayoutPlans, cut_experts_are_no_cheaper_to_reach_than_whole_ones) {
  PlanRequest request = request_for("deepseek-v3.1", "nvfp4", 8);
  request.concurrency = request.context = 1024;
  request.answer = 0;
  const Plan best = make_plan(request);
  EXPECT_EQ(best.chosen->layout, (Layout{1, 8, 1, 8}));
  request.ep = 2;
  request.tp = 1;
  const double copies = 2 * (1 - std::pow(2, -8)) * (4 - 0.5);
  EXPECT_NEAR(make_plan(request).chosen->step.exchange, 2 * 58 * (128 * copies * 7168 * 2 / 450e9 + 2e-6), 1e-9);
}

// 32 GPUs in four machines, two ranks of 16: over links a token goes to all GPUs of the ranks met but its own; the
// cards, with three of four machines met in 2 (1 - 2^-8) cases of 2, take less.
TEST(LayoutPlans, ranks_of_several_machines_are_met_in_all_of_them) {
  PlanRequest request = request_for("deepseek-v3.1", "int4-g32", 32);
  request.tp = 1;
  request.ep = 2;
  request.concurrency = 4096;
  request.context = 512;
  request.answer = 0;
  const double met = 2 * (1 - std::pow(2, -8));
  const double by_link = 128 * met * (16 - 0.5) * 7168 * 2 / 450e9;
  const double by_card = 128 * met / 2 * 3 * 7168 * 2 / 50e9;
  ASSERT_GT(by_link, by_card);
  const double exchange = make_plan(request).chosen->step.exchange;
  EXPECT_NEAR(exchange, 2 * 58 * (by_link + 7e-6), 1e-9);
  EXPECT_NEAR(exchange, 15.418e-3, 0.001e-3);
}

// Four groups of 6 in three machines of 8: one of them lies in two, and its 93 x 2 all-reduces of 16 tokens cross.
TEST(LayoutPlans, a_group_that_fits_into_no_machine_crosses) {
  PlanRequest request = request_for("kimi-k3", "mxfp4", 24);
  request.gpu = "b300";
  request.tp = 6;
  request.ep = request.pp = 1;
  request.dp = 4;
  request.concurrency = 64;
  request.context = 4096;
  const LayoutPlan plan = *make_plan(request).chosen;
  const double bytes = 16 * 7168 * 2;
  const double inside = 2 * 5.0 / 6 * bytes / 900e9, across = 2 * 0.5 * bytes / 3 / 100e9;
  EXPECT_NEAR(plan.step.exchange, 93 * 2 * (std::max(inside, across) + 2 * (2e-6 + 5e-6)), 1e-9);
}

}  // namespace
}  // namespace nibble
