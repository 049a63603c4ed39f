#include "nibble/engine/generate_batch.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "nibble/base/error.h"
#include "nibble/engine/loaded_for_test.h"

namespace nibble {
namespace {

const std::vector<std::vector<TokenId>> kPrompts = {{1, 2, 3}, {7}, {4, 5, 6, 8, 9, 10, 11}, {3, 1}};

class GenerateBatch : public ::testing::Test {
 protected:
  LoadedForTest loaded_{golden_model("qwen3_moe"), options_for_test(ActivationKind::kF32, CacheElement::kBF16)};
};

// Greedy and drawn, all at once and two at a time: what generate() writes for each alone.
TEST_F(GenerateBatch, each_answer_is_what_it_would_be_alone) {
  for (const double temperature : {0.0, 1.0}) {
    BatchGenerateOptions options;
    options.tokens = 12;
    options.sampler.temperature = temperature;
    options.sampler.seed = 3;
    options.chains = {5, 6, 7, 3};
    for (const uint64_t most : {uint64_t{0}, uint64_t{2}}) {
      options.most_sequences = most;
      uint64_t heard = 0;
      const auto answers =
          generate_batch(&loaded_.engine, kPrompts, options, {}, [&](uint64_t tokens) { heard += tokens; });
      EXPECT_EQ(heard, 12 * kPrompts.size());
      for (size_t i = 0; i < kPrompts.size(); ++i) {
        GenerateOptions alone;
        alone.tokens = 12;
        alone.sampler = options.sampler;
        alone.chain = options.chains[i];
        EXPECT_EQ(answers[i].tokens, generate(&loaded_.engine, nullptr, kPrompts[i], alone, {}).tokens) << i;
        EXPECT_EQ(answers[i].finish, Finish::kLength);
      }
    }
  }
}

TEST_F(GenerateBatch, an_end_token_ends_one_answer_alone) {
  BatchGenerateOptions options;
  options.tokens = 12;
  const auto free = generate_batch(&loaded_.engine, kPrompts, options);
  options.end_tokens = {free[2].tokens[4]};
  const auto ended = generate_batch(&loaded_.engine, kPrompts, options);
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    const auto end = std::find(free[i].tokens.begin(), free[i].tokens.end(), options.end_tokens[0]);
    std::vector<TokenId> wanted(free[i].tokens.begin(), end);
    if (end != free[i].tokens.end()) wanted.push_back(*end);
    EXPECT_EQ(ended[i].tokens, wanted);
    EXPECT_EQ(ended[i].finish, end == free[i].tokens.end() ? Finish::kLength : Finish::kEndToken);
  }
}

// Given tokens are read as if they had been chosen.
TEST_F(GenerateBatch, given_tokens_stand_behind_choices) {
  BatchGenerateOptions options;
  options.tokens = 4;
  const auto given = [](uint64_t sequence, uint64_t step) {
    return step == 2 ? std::vector<TokenId>{} : std::vector<TokenId>{static_cast<TokenId>(sequence + step)};
  };
  const auto answers = generate_batch(&loaded_.engine, kPrompts, options, given);
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    std::vector<TokenId> context = kPrompts[i];
    for (uint64_t step = 0; step < 4; ++step) {
      GenerateOptions one;
      one.tokens = 1;
      const TokenId token = generate(&loaded_.engine, nullptr, context, one, {}).tokens[0];
      ASSERT_EQ(answers[i].tokens[step], token) << i << ", " << step;
      context.push_back(token);
      for (const TokenId id : given(i, step)) context.push_back(id);
    }
  }
}

TEST_F(GenerateBatch, prompts_are_checked_before_any_pass) {
  EXPECT_THROW(generate_batch(&loaded_.engine, {{1}, {}}, {}), Error);
  EXPECT_THROW(generate_batch(&loaded_.engine, {{1}, {1 << 30}}, {}), Error);
}

}  // namespace
}  // namespace nibble
