// Whole plans: the published table of a trillion parameters digit by digit, and the field's classical mistakes, each of
// which would change a figure here.
#include "nibble/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <tuple>

#include "nibble/base/error.h"
#include "nibble/ledger/routing.h"
#include "nibble/plan/model_rows.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;

std::string digits(double number, int decimals = 2) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, number);
  return text;
}

PlanRequest request_for(const std::string& model, const std::string& format, uint64_t gpus) {
  PlanRequest request;
  request.model = model;
  request.formats = {format};
  request.gpus = gpus;
  return request;
}

// Row of a trillion parameters: TB, GPUs, machines of 8, floor in ms on 8 H200, what scales add.
struct Published {
  const char *format, *terabytes;
  uint64_t gpus, machines;
  const char *floor_ms, *scales;
};

TEST(Plan, a_trillion_parameters_as_published) {
  PlanRequest request;
  request.total = 1e12;
  request.active = 32e9;
  request.gpus = 8;
  const Plan plan = make_plan(request);
  constexpr Published kRows[] = {{"bf16", "2.00", 21, 3, "1.67", "0.00"},
                                 {"fp8-block", "1.00", 11, 2, "0.83", "0.02"},
                                 {"int4-g32", "0.56", 6, 1, "0.47", "12.50"},
                                 {"mxfp4", "0.53", 6, 1, "0.44", "6.25"},
                                 {"nvfp4", "0.56", 6, 1, "0.47", "12.50"}};
  ASSERT_EQ(plan.rows.size(), std::size(kRows));
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const FormatRow& row = plan.rows[i];
    SCOPED_TRACE(row.format);
    EXPECT_EQ(row.format, kRows[i].format);
    EXPECT_EQ(digits(static_cast<double>(row.size.weight_bytes) / 1e12), kRows[i].terabytes);
    EXPECT_EQ(row.min_gpus, kRows[i].gpus);
    EXPECT_EQ(row.machines, kRows[i].machines);
    EXPECT_EQ(digits(row.floor_seconds * 1e3), kRows[i].floor_ms);
    EXPECT_EQ(digits(row.scales_percent()), kRows[i].scales);
    EXPECT_EQ(row.fits, kRows[i].gpus <= 8);
  }
  EXPECT_TRUE(plan.fits);
}

TEST(Plan, a_format_that_does_not_fit_is_an_answer_with_three_ways_out) {
  PlanRequest request;
  request.total = 1e12;
  request.active = 32e9;
  request.gpus = 8;
  request.formats = {"bf16"};
  const Plan plan = make_plan(request);
  EXPECT_FALSE(plan.fits);
  EXPECT_EQ(plan.changes.size(), 3U);
}

// "--gpu NAME --gpus N …", followed.
PlanRequest changed(PlanRequest request, const std::string& options) {
  std::istringstream words(options);
  for (std::string option, value; words >> option >> value;) {
    if (option == "--format") request.formats = {value};
    if (option == "--gpus") request.gpus = std::stoull(value);
    if (option == "--gpu") request.gpu = value;
    if (option == "--reserve") request.reserve = std::stod(value);
  }
  return request;
}

TEST(Plan, proposals_for_a_number_of_parameters_fit_when_followed) {
  for (const auto& [total, gpu, format] :
       {std::tuple{1e12, "b300", ""}, {1e12, "h200", "bf16"}, {4e15, "h200", "bf16"}, {5e10, "t4", "mxfp4"}}) {
    PlanRequest request;
    request.total = total;
    request.active = 1e9;
    request.gpu = gpu;
    request.gpus = 1;
    if (*format != '\0') request.formats = {format};
    const Plan plan = make_plan(request);
    EXPECT_FALSE(plan.fits);
    EXPECT_EQ(plan.changes.size(), 3U) << total << gpu;
    for (const Change& change : plan.changes) {
      const PlanRequest followed = changed(request, change.what);
      EXPECT_LE(followed.gpus, kMostGpus) << change.what;
      EXPECT_TRUE(make_plan(followed).fits) << change.what;
    }
  }
}

// 2 EB: 151 times what 65,536 of the largest device hold.
TEST(Plan, what_no_number_of_gpus_holds_is_neither_proposed_nor_chosen) {
  PlanRequest request;
  request.total = 1e18;
  request.active = 1e9;
  request.formats = {"bf16"};
  for (const uint64_t gpus : {0U, 8U}) {
    request.gpus = gpus;
    const Plan plan = make_plan(request);
    EXPECT_FALSE(plan.fits);
    EXPECT_LE(plan.gpus, kMostGpus);
    EXPECT_TRUE(plan.changes.empty()) << plan.changes[0].what;
  }
}

TEST(Plan, other_sizes_and_reserves) {
  PlanRequest request;
  request.total = 400e9;
  request.active = 17e9;
  request.gpu = "b200";
  request.gpus = 4;
  request.reserve = 0.1;
  request.formats = {"int4-g32"};
  const Plan plan = make_plan(request);
  EXPECT_EQ(plan.rows[0].size.weight_bytes, 225'000'000'000U);
  EXPECT_EQ(plan.rows[0].min_gpus, 2U);  // 225 / (180 · 0.9) = 1.4
  EXPECT_DOUBLE_EQ(plan.rows[0].floor_seconds, 17e9 * 4.5 / 8 / (4 * plan.device.memory_bandwidth));
}

// C95: experts divided by EP; 4.5 bits each.
TEST(Plan, C95_experts_are_divided_by_ep) {
  PlanRequest request = request_for("kimi-k2.5", "int4-g32", 8);
  request.ep = 8;
  const Plan plan = make_plan(request);
  ASSERT_TRUE(plan.chosen);
  EXPECT_EQ(plan.subject->counts.routed, 1'014'686'023'680U);
  EXPECT_EQ(plan.chosen->memory.by_role[static_cast<size_t>(Role::kRoutedExpert)], 71'345'111'040U);
}

// C101: memory from all experts, speed from those a token meets.
TEST(Plan, C101_total_for_memory_active_for_speed) {
  const Plan plan = make_plan(request_for("qwen3-30b-a3b", "bf16", 1));
  EXPECT_EQ(plan.subject->counts.routed, 28'991'029'248U);
  uint64_t routed = 0;
  uint64_t others = 0;
  for (const WeightItem& item : plan.items) {
    if (item.is_stack()) routed += item.bytes;
    if (!item.is_stack() && item.param.role != Role::kEmbedding) others += item.bytes;
  }
  EXPECT_EQ(routed, uint64_t{2} * 28'991'029'248U);
  EXPECT_EQ(plan.rows[0].size.active_bytes, others + uint64_t{2} * 1'811'939'328U);
}

// C99: activations stay, draft weights and cache come once each.
TEST(Plan, C99_drafts_are_counted_once) {
  std::map<uint64_t, MemoryPlan> plans;
  for (const uint64_t draft : {0U, 1U, 2U, 3U}) {
    PlanRequest request = request_for("glm-4.5", "fp8-block", 8);
    request.draft = draft;
    request.tp = 8;
    request.ep = 8;
    plans[draft] = make_plan(request).chosen->memory;
  }
  EXPECT_EQ(plans[0].by_role[static_cast<size_t>(Role::kMtp)], 0U);
  EXPECT_GT(plans[1].by_role[static_cast<size_t>(Role::kMtp)], 0U);
  EXPECT_EQ(plans[1].kv - plans[0].kv, plans[0].kv / 92);  // one MTP layer beside 92
  for (const uint64_t draft : {1U, 2U, 3U}) {
    EXPECT_EQ(plans[draft].activations, plans[0].activations);
    EXPECT_EQ(plans[draft].weights, plans[1].weights);
    EXPECT_EQ(plans[draft].kv, plans[1].kv);
  }
}

// C105: four bits are faster while reading decides, slower where arithmetic does.
TEST(Plan, C105_four_bits_can_be_slower) {
  const Plan plan = make_plan(request_for("qwen3-235b-a22b", "int4-g32", 8));
  ASSERT_TRUE(plan.schemes.slower_than_8bit);
  const auto w4a16 = [](const SchemeChoice& choice) {
    for (const SchemeTime& time : choice.times) {
      if (time.scheme == Scheme::kW4A16) return time.seconds;
    }
    return 0.0;
  };
  for (const SchemeChoice& choice : plan.schemes.choices) {
    if (choice.tokens == 8) {
      EXPECT_LT(w4a16(choice), 0.6 * choice.seconds_8bit);
    }
    if (choice.tokens == 8192) {
      EXPECT_GT(w4a16(choice), choice.seconds_8bit);
    }
    EXPECT_EQ(choice.tokens >= *plan.schemes.slower_than_8bit, w4a16(choice) > choice.seconds_8bit) << choice.tokens;
  }
}

// Popular experts are the same for many tokens, so fewer are read, and the rank that has most of their tokens computes
// longest: the same as the step's own experts.
TEST(Plan, skew_is_in_the_choice_of_arithmetic_too) {
  PlanRequest request = request_for("qwen3-235b-a22b", "int4-g32", 8);
  request.ep = 8;
  request.concurrency = 64;
  for (const double skew : {0.0, 1.0}) {
    request.skew = skew;
    const Plan plan = make_plan(request);
    const Routing routing(128, 8, skew);
    for (const SchemeChoice& choice : plan.schemes.choices) {
      const double experts = 128.0 * 3 * 4096 * 1536 / 8;
      const double read = routing.busiest_share(static_cast<double>(choice.tokens), 8) * experts * 4.5 / 8;
      const double flops = static_cast<double>(choice.tokens) * routing.rank_load(8) * 2 * experts * 8 / 128;
      const double seconds = std::max(read / plan.device.memory_bandwidth, flops / plan.device.bf16_flops);
      EXPECT_NEAR(choice.times[3].seconds, seconds, 1e-9 * seconds) << skew << " " << choice.tokens;
    }
  }
}

TEST(Plan, mla_is_no_gqa_and_sliding_is_not_full) {
  const Plan mla = make_plan(request_for("deepseek-v3", "fp8-block", 16));
  EXPECT_EQ(mla.subject->cache.bytes_per_token(2), 61 * 576 * 2);  // as GQA: 61 · 128 · (192 + 128) · 2
  const Plan sliding = make_plan(request_for("gpt-oss-120b", "mxfp4", 1));
  EXPECT_EQ(sliding.subject->cache.bytes(131072, 2), 4'836'556'800U);  // C97; as full: 9,663,676,416
}

TEST(Plan, weights_of_a_layout_are_those_of_the_model) {
  // Whatever the layout, its GPUs together hold every routed expert once.
  for (const auto& [tp, ep, dp] : {std::tuple{8U, 1U, 1U}, std::tuple{8U, 8U, 1U}, std::tuple{2U, 4U, 4U}}) {
    PlanRequest request = request_for("qwen3-235b-a22b", "bf16", 8);
    request.tp = tp;
    request.ep = ep;
    request.dp = dp;
    const Plan plan = make_plan(request);
    ASSERT_TRUE(plan.chosen) << tp << ep << dp;
    EXPECT_EQ(plan.chosen->memory.by_role[0] * 8, 2 * plan.subject->counts.routed);
  }
}

TEST(Plan, every_term_of_the_sum_is_shown) {
  const Plan plan = make_plan(request_for("kimi-k2.5", "int4-g32", 8));
  const MemoryPlan& memory = plan.chosen->memory;
  uint64_t roles = 0;
  for (const uint64_t bytes : memory.by_role) roles += bytes;
  EXPECT_EQ(memory.weights, roles);
  EXPECT_EQ(memory.total(), memory.weights + memory.kv + memory.activations + memory.workspace + memory.communication +
                                memory.graphs + memory.reserve);
  // The reserve is filled by what it was kept for.
  EXPECT_EQ(memory.total() - memory.weights, static_cast<uint64_t>(0.3 * 141e9));
}

TEST(Plan, proposals_fit_when_followed) {
  PlanRequest request = request_for("qwen3-235b-a22b", "bf16", 4);
  const Plan plan = make_plan(request);
  EXPECT_FALSE(plan.fits);
  ASSERT_EQ(plan.changes.size(), 3U);
  for (const Change& change : plan.changes) {
    ASSERT_EQ(std::count(change.what.begin(), change.what.end(), ' '), 1) << change.what;
    PlanRequest changed = request;
    const size_t space = change.what.find(' ');
    const std::string option = change.what.substr(0, space);
    const std::string value = change.what.substr(space + 1);
    if (option == "--format") changed.formats = {value};
    if (option == "--gpus") changed.gpus = std::stoull(value);
    if (option == "--gpu") changed.gpu = value;
    if (option == "--context") changed.context = std::stoull(value);
    if (option == "--concurrency") changed.concurrency = std::stoull(value);
    if (option == "--kv") changed.kv_element_bytes = 1;
    EXPECT_TRUE(make_plan(changed).fits) << change.what;
  }
}

// Hopeless loads are told by a sum alone: the answer is the whole search's.
TEST(Plan, whether_any_layout_fits_is_what_the_search_says) {
  for (const char* model : {"gpt-oss-20b", "deepseek-v3", "kimi-k3", "gemma-4-26b-a4b"}) {
    const Subject subject = load_subject(model);
    const WeightGroups weights(subject.spec, weigh_target(subject, parse_format("mxfp4")));
    for (const uint64_t gpus : {1U, 4U, 16U}) {
      for (uint64_t context = 1024; context < uint64_t{1} << 26; context *= 4) {
        PlanRequest request;
        request.context = context;
        const Device& device = find_device("h200");
        EXPECT_EQ(any_layout_fits(subject, weights, device, request, gpus),
                  !search_layouts(subject, weights, device, request, gpus, device.bf16_flops).plans.empty())
            << model << " " << gpus << " " << context;
      }
    }
  }
}

TEST(Plan, unknown_names_are_refused_with_the_nearest) {
  PlanRequest request = request_for("kimi-k2.6", "bf16", 8);
  try {
    make_plan(request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("kimi-k2.5"));
  }
  request.model = "kimi-k2.5";
  request.gpu = "h2000";
  try {
    make_plan(request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("h200"));
  }
}

TEST(Plan, a_speculation_that_loses_says_at_which_acceptance) {
  PlanRequest request = request_for("deepseek-v3", "fp8-block", 16);
  request.draft = 3;
  const Plan plan = make_plan(request);
  ASSERT_TRUE(plan.speculation);
  const Speculation& s = *plan.speculation;
  EXPECT_GT(s.distinct_after, s.distinct_before);
  ASSERT_TRUE(s.break_even);
  // At the break-even the tokens of a step pay for what it costs more.
  const double a = *s.break_even;
  const double tokens = 1 + a + a * a + a * a * a;
  EXPECT_NEAR(tokens / ((s.verify_seconds + s.draft_seconds) / s.step_seconds), 1, 1e-9);
}

// Of a prompt only the last token needs the head: 8,192 tokens on one GPU, counted from the outside.
TEST(Plan, a_prompt_meets_the_head_once) {
  const Plan plan = make_plan(request_for("gpt-oss-20b", "released", 1));
  for (const PrefillPoint& point : plan.prefill) {
    if (point.tokens == 8192) {
      EXPECT_NEAR(point.time.compute, 57.0e-3, 0.1e-3);
    }
  }
}

// Linear attention's gates and inputs are cut with its heads: Mamba's projection alone is 27.6 GB here.
TEST(Plan, inputs_of_linear_heads_are_cut) {
  const auto attention = [](uint64_t tp) {
    PlanRequest request = request_for("nemotron-3-ultra-550b-a55b", "nvfp4", tp);
    request.tp = request.ep = tp;
    return make_plan(request).chosen->memory.by_role[static_cast<size_t>(Role::kAttention)];
  };
  EXPECT_LT(attention(8), attention(1) / 7);
}

TEST(Plan, stacks_of_shared_experts_are_no_rows) {
  PlanRequest request = request_for("inkling", "nvfp4", 16);
  request.tp = 8;
  request.ep = 8;
  EXPECT_TRUE(make_plan(request).fits);
}

TEST(Plan, mtp_layers_that_draft_nothing_decide_nothing) {
  PlanRequest request = request_for("deepseek-v3", "released", 8);
  request.reserve = 0.394;
  const Plan plan = make_plan(request);
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(plan.fits, !plan.search.plans.empty());
}

TEST(Plan, the_row_that_is_shown_is_one_that_fits) {
  PlanRequest request;
  request.model = "deepseek-v3";
  request.gpus = 8;
  request.concurrency = 48;
  request.context = 131072;
  const Plan plan = make_plan(request);
  EXPECT_TRUE(plan.fits);
  EXPECT_TRUE(plan.rows[plan.detail].fits && plan.chosen->memory.fits());
  EXPECT_FALSE(plan.rows[0].fits);
}

TEST(Plan, numbers_that_make_no_layout_are_refused_with_a_reason) {
  PlanRequest request = request_for("gpt-oss-120b", "released", 8);
  request.ep = 16;
  const Plan plan = make_plan(request);
  EXPECT_FALSE(plan.fits);
  ASSERT_EQ(plan.search.refused.size(), 1U);
  EXPECT_THAT(plan.search.refused[0].refusal.reason, HasSubstr("EP divides TP x DP"));
}

TEST(Plan, engines_are_told_what_they_know) {
  PlanRequest request = request_for("gpt-oss-120b", "released", 8);
  request.tp = 8;
  request.ep = 4;
  EXPECT_TRUE(make_plan(request).fits);
  request.engine = ServingEngine::kVllm;
  const Plan plan = make_plan(request);
  EXPECT_FALSE(plan.fits);
  EXPECT_THAT(plan.search.refused[0].refusal.reason, HasSubstr("vLLM"));
}

TEST(Plan, a_device_without_links_uses_its_network) {
  PlanRequest request = request_for("gpt-oss-120b", "released", 2);
  request.gpu = "gb10";
  const Plan plan = make_plan(request);
  ASSERT_TRUE(plan.exchange);
  EXPECT_TRUE(std::isfinite(plan.exchange->one_domain) && std::isfinite(plan.chosen->step.total()));
}

TEST(Plan, a_number_of_gpus_that_is_not_usual_leads_to_a_usual_one) {
  PlanRequest request = request_for("kimi-k2.5", "released", 0);
  request.tp = 3;
  const Plan plan = make_plan(request);
  EXPECT_FALSE(plan.fits);
  EXPECT_EQ(plan.gpus, 3U);
  ASSERT_FALSE(plan.changes.empty());
  EXPECT_THAT(plan.changes[0].what, HasSubstr("--gpus 8 "));
}

TEST(Plan, the_steps_scheme_is_the_tables) {
  for (const char* format : {"fp8-block", "int4-g32", "nvfp4", "bf16"}) {
    const Plan plan = make_plan(request_for("qwen3-235b-a22b", format, 8));
    EXPECT_EQ(plan.schemes.choices[0].chosen, *plan.scheme) << format;
  }
  EXPECT_EQ(scheme_obstacle(Scheme::kW4A8, parse_format("int4-g32"), load_device("a100")).empty(), false);
  EXPECT_EQ(scheme_obstacle(Scheme::kW4A8, parse_format("int4-g32"), load_device("h100")), "");
  EXPECT_EQ(scheme_obstacle(Scheme::kW4A8, parse_format("int4-g32"), load_device("epyc9654")), "");
}

TEST(Plan, options_that_change_nothing_are_named) {
  PlanRequest request;
  request.total = 1e12;
  request.active = 32e9;
  EXPECT_TRUE(make_plan(request).notes.empty());
  request.context = 4096;
  request.draft = 2;
  ASSERT_EQ(make_plan(request).notes.size(), 1U);
  EXPECT_THAT(make_plan(request).notes[0], HasSubstr("--context, --draft"));
}

TEST(Plan, counts_that_differ_from_the_tensors_are_named) {
  const Plan plan = make_plan(request_for("deepseek-v4.1-flash", "released", 8));
  EXPECT_THAT(plan.notes, ::testing::Contains(HasSubstr("parameters more than the release's tensors")));
}

TEST(Plan, the_release_of_a_plain_model_is_no_format) {
  EXPECT_THROW(make_plan(request_for("mixtral-8x7b", "released", 8)), Error);
}

}  // namespace
}  // namespace nibble
