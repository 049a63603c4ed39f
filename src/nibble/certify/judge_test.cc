// Choices, margins and divergences by hand, and the statement the certificate stands on: the first flip of a
// teacher-forced pass is where the candidate's own free-running answer leaves the chain.
#include "nibble/certify/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "nibble/base/error.h"
#include "nibble/certify/divergence.h"
#include "nibble/engine/generate_batch.h"
#include "nibble/engine/loaded_for_test.h"
#include "nibble/engine/scheme.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;

TEST(JudgeChoice, margins_probabilities_and_divergence) {
  const std::vector<float> reference = {1, 3, 2, 0}, candidate = {1, 2, 2.5F, 0};
  const Choice choice = judge_choice(reference, candidate, 1, {}, 0, 0);
  EXPECT_EQ(choice.reference, 1);
  EXPECT_EQ(choice.candidate, 2);
  EXPECT_EQ(choice.second, 2);
  EXPECT_EQ(choice.margin, 1);
  EXPECT_EQ(choice.candidate_margin, -0.5F);
  double r = 0, c = 0, kl = 0;
  for (size_t i = 0; i < 4; ++i) {
    r += std::exp(static_cast<double>(reference[i]));
    c += std::exp(static_cast<double>(candidate[i]));
  }
  for (size_t i = 0; i < 4; ++i) {
    const auto a = static_cast<double>(reference[i]), b = static_cast<double>(candidate[i]);
    kl += std::exp(a) / r * ((a - std::log(r)) - (b - std::log(c)));
  }
  EXPECT_NEAR(choice.kl, kl, 1e-7);
  EXPECT_NEAR(choice.reference_log_p, 3 - std::log(r), 1e-6);
  EXPECT_NEAR(choice.candidate_log_p, 2 - std::log(c), 1e-6);
}

TEST(JudgeChoice, ties_go_to_the_lowest_id_and_equal_models_differ_by_nothing) {
  const std::vector<float> tied = {2, 5, 5, 1};
  const Choice choice = judge_choice(tied, tied, 2, {}, 3, 4);
  EXPECT_EQ(choice.reference, 1);
  EXPECT_EQ(choice.candidate, 1);
  EXPECT_EQ(choice.margin, 0);
  EXPECT_EQ(choice.kl, 0);
}

TEST(JudgeChoice, logits_that_are_no_numbers_are_refused) {
  const std::vector<float> good = {1, 2}, nan = {1, std::nanf("")},
                           infinite = {std::numeric_limits<float>::infinity(), 1};
  JudgeOptions options;
  options.candidate_name = "the candidate";
  for (const std::vector<float>* bad : {&nan, &infinite}) {
    try {
      judge_choice(good, *bad, 0, options, 0, 0);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("the candidate"));
      EXPECT_THAT(error.what(), HasSubstr("not_finite 1, of 2"));
    }
  }
  // A token that is impossible in both is none.
  const std::vector<float> masked = {1, -std::numeric_limits<float>::infinity(), 0};
  EXPECT_EQ(judge_choice(masked, masked, 0, {}, 0, 0).kl, 0);
}

// KL of candidates near and far, against long double: the float that is kept loses more than the sums do.
TEST(JudgeChoice, divergence_is_right_to_a_float_whatever_the_vocabulary) {
  constexpr size_t kVocabulary = 40000;
  for (const double distance : {1e-4, 1e-2, 1.0, 20.0}) {
    std::vector<float> reference(kVocabulary), candidate(kVocabulary);
    for (size_t i = 0; i < kVocabulary; ++i) {
      const double logit = 50 + 4 * random_normal(1, i);
      reference[i] = static_cast<float>(logit);
      candidate[i] = static_cast<float>(logit + distance * random_normal(2, i));
    }
    long double r = 0, c = 0, kl = 0;
    for (size_t i = 0; i < kVocabulary; ++i) {
      r += std::exp(static_cast<long double>(reference[i]));
      c += std::exp(static_cast<long double>(candidate[i]));
    }
    for (size_t i = 0; i < kVocabulary; ++i) {
      const long double a = static_cast<long double>(reference[i]) - std::log(r);
      kl += std::exp(a) * (a - (static_cast<long double>(candidate[i]) - std::log(c)));
    }
    const Choice choice = judge_choice(reference, candidate, 0, {}, 0, 0);
    const auto wanted = static_cast<double>(kl);
    EXPECT_NEAR(static_cast<double>(choice.kl), wanted, 6e-8 * wanted + 2e-13) << distance;
    EXPECT_NEAR(choice.candidate_log_p, static_cast<double>(static_cast<long double>(candidate[0]) - std::log(c)),
                4e-6);
  }
}

JudgedChain made_of(const std::vector<std::pair<TokenId, TokenId>>& choices) {
  JudgedChain chain;
  for (const auto& [token, candidate] : choices) {
    chain.push_back({.token = token, .reference = token, .candidate = candidate, .margin = 0.5F, .kl = 0.25F});
  }
  return chain;
}

TEST(Divergence, kinds) {
  const std::vector<TokenId> ends = {9};
  const Chain chain{.prompt = {1}, .answer = {2, 3, 9}};
  EXPECT_EQ(divergence_of(chain, made_of({{2, 2}, {3, 3}, {9, 9}}), ends).first, std::nullopt);
  const ChainDivergence forked = divergence_of(chain, made_of({{2, 2}, {3, 4}, {9, 1}}), ends);
  EXPECT_EQ(forked.first, 1U);
  EXPECT_EQ(forked.kind, DivergenceKind::kForked);
  EXPECT_EQ(divergence_of(chain, made_of({{2, 9}, {3, 3}, {9, 9}}), ends).kind, DivergenceKind::kStoppedEarly);
  EXPECT_EQ(divergence_of(chain, made_of({{2, 2}, {3, 3}, {9, 5}}), ends).kind, DivergenceKind::kRanOn);
}

TEST(Divergence, ends_and_totals) {
  const Chain ended{.prompt = {1}, .answer = {2, 9}, .cluster = 4},
      capped{.prompt = {1}, .answer = {2}, .capped = true};
  const std::vector<ChainDivergence> divergences = {divergence_of(ended, made_of({{2, 2}, {9, 9}}), {}),
                                                    divergence_of(ended, made_of({{2, 3}, {9, 8}}), {}),
                                                    divergence_of(capped, made_of({{2, 2}}), {})};
  const std::vector<ChainEnd> ends = chain_ends(divergences);
  EXPECT_EQ(ends[0].time, 2U);
  EXPECT_EQ(ends[0].kind, ChainEndKind::kEnded);
  EXPECT_EQ(ends[0].cluster, 4U);
  EXPECT_EQ(ends[1].time, 1U);
  EXPECT_EQ(ends[1].kind, ChainEndKind::kDiverged);
  EXPECT_EQ(ends[2].kind, ChainEndKind::kCensored);
  const std::vector<JudgedChain> judged = {made_of({{2, 2}, {9, 9}}), made_of({{2, 3}, {9, 8}})};
  const ChoiceTotals totals = choice_totals(judged, 0.5);
  EXPECT_EQ(totals.tokens, 4U);
  EXPECT_EQ(totals.flips, 2U);
  EXPECT_EQ(totals.flips_within_noise, 2U);
  EXPECT_EQ(choice_totals(judged, 0.49).flips_within_noise, 0U);
  EXPECT_EQ(totals.flip_rate(), 0.5);
  EXPECT_EQ(totals.kl_mean, 0.25);
}

TEST(Divergence, expected_agreement_is_a_product_of_ratios_up_to_one) {
  JudgedChain a(2), b(1);
  a[0].candidate_log_p = std::log(0.5F);  // of 1
  a[1].reference_log_p = std::log(0.5F);  // more probable: 1
  b[0].candidate_log_p = std::log(0.2F);
  const std::vector<double> mean = expected_agreement(std::vector<JudgedChain>{a, b});
  ASSERT_EQ(mean.size(), 2U);
  EXPECT_NEAR(mean[0], (0.5 + 0.2) / 2, 1e-7);
  EXPECT_NEAR(mean[1], (0.5 + 0.2) / 2, 1e-7);
}

// Two models of one family, and a few prompts.
struct Pair {
  std::string name;
  EngineOptions reference, candidate;
};

std::vector<std::vector<TokenId>> prompts_of(const ModelSpec& spec) {
  std::vector<std::vector<TokenId>> prompts;
  for (uint64_t p = 0; p < 6; ++p) {
    prompts.emplace_back();
    for (uint64_t i = 0; i < 3 + 2 * p; ++i) {
      prompts.back().push_back(static_cast<TokenId>(random_bits(p, i) % spec.vocabulary));
    }
  }
  return prompts;
}

// Chains by the reference; their first flips under the candidate must be the places where its own answers differ.
void expect_first_flips_are_where_answers_part(const Pair& pair, const SamplerOptions& sampler, uint64_t* parted) {
  LoadedForTest reference(golden_model(pair.name), pair.reference), candidate(golden_model(pair.name), pair.candidate);
  const auto prompts = prompts_of(reference.model.spec);
  BatchGenerateOptions options;
  options.tokens = 40;
  options.sampler = sampler;
  const auto answers = generate_batch(&reference.engine, prompts, options);
  const auto own = generate_batch(&candidate.engine, prompts, options);
  std::vector<Chain> chains;
  chains.reserve(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    chains.push_back({.prompt = prompts[i], .answer = answers[i].tokens, .capped = true, .cluster = i});
  }
  const auto tokens = read_tokens(chains);
  ScoredStates r(reference.checkpoint, reference.model, pair.reference, tokens, &reference.pool);
  ScoredStates c(candidate.checkpoint, candidate.model, pair.candidate, tokens, &candidate.pool);
  JudgeOptions judging;
  judging.sampler = sampler;
  const auto judged = judge_chains(&r, &c, chains, judging, &reference.pool);
  EXPECT_EQ(choice_totals(judged, 0).reference_flips, 0U) << pair.name;
  for (size_t i = 0; i < chains.size(); ++i) {
    const auto at = std::mismatch(answers[i].tokens.begin(), answers[i].tokens.end(), own[i].tokens.begin());
    std::optional<uint64_t> first;
    if (at.first != answers[i].tokens.end()) first = static_cast<uint64_t>(at.first - answers[i].tokens.begin());
    EXPECT_EQ(divergence_of(chains[i], judged[i], {}).first, first) << pair.name << ", chain " << i;
    *parted += first.has_value();
  }
}

class JudgedFamilies : public ::testing::TestWithParam<const char*> {};

TEST_P(JudgedFamilies, first_flips_are_where_free_running_answers_part) {
  EngineOptions plain = options_for_test(ActivationKind::kF32, CacheElement::kBF16), other = plain;
  other.cache = CacheElement::kE4M3;
  other.arithmetic = arithmetics_of_scheme("bf16");
  uint64_t parted = 0;
  SamplerOptions sampled;
  sampled.temperature = 0.8;
  sampled.top_p = 0.9;
  sampled.seed = 5;
  for (const SamplerOptions& sampler : {SamplerOptions{}, sampled}) {
    expect_first_flips_are_where_answers_part({GetParam(), plain, other}, sampler, &parted);
  }
  EXPECT_GE(parted, 1U);  // or nothing was shown
}

INSTANTIATE_TEST_SUITE_P(Models, JudgedFamilies,
                         ::testing::Values("llama", "qwen3_moe", "gpt_oss_mxfp4", "deepseek_v3", "kimi_k2", "glm4_moe",
                                           "minimax_m2", "mixtral"),
                         [](const auto& one) { return std::string(one.param); });

TEST(JudgeChains, different_vocabularies_are_refused) {
  EXPECT_NO_THROW(check_vocabularies(256, 256, "m"));
  try {
    check_vocabularies(256, 320, "the candidate");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the candidate, reference_tokens 256, candidate_tokens 320"));
  }
}

}  // namespace
}  // namespace nibble
