#include "nibble/engine/perplexity.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "nibble/base/error.h"
#include "nibble/engine/loaded_for_test.h"
#include "nibble/engine/score.h"

namespace nibble {
namespace {

using Windows = std::vector<std::vector<TokenId>>;

TEST(Perplexity, score_of_a_token) {
  const std::array logits = {1.0F, 3.0F, 2.0F, 3.0F};
  const double sum = std::exp(1.0) + std::exp(2.0) + 2 * std::exp(3.0);
  const TokenScore score = score_token(logits, 2);
  EXPECT_NEAR(score.nll, -std::log(std::exp(2.0) / sum), 1e-12);
  EXPECT_EQ(score.logit, 2.0F);
  // Of equals the lower id comes first.
  EXPECT_EQ(score.best, 1);
  EXPECT_EQ(score.second, 3);
  EXPECT_EQ(score.best_logit - score.second_logit, 0.0F);
  // No overflow.
  EXPECT_NEAR(score_token(std::array{1000.0F, 0.0F}, 0).nll, 0, 1e-12);
  // NaN is never the best, and stays in the sum.
  const TokenScore broken = score_token(std::array{std::nanf(""), -1.0F, -2.0F}, 1);
  EXPECT_EQ(broken.best, 1);
  EXPECT_EQ(broken.second, 2);
  EXPECT_TRUE(std::isnan(broken.nll));
}

TEST(Perplexity, windows_are_full_unless_there_is_one) {
  const std::vector<TokenId> text = {1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(text_windows(text, 3), (Windows{{1, 2, 3}, {4, 5, 6}}));
  EXPECT_EQ(text_windows(text, 100), Windows{text});
  // With a token that begins texts: in front of all, then in the place of each window's first.
  EXPECT_EQ(text_windows(text, 3, 0), (Windows{{0, 1, 2}, {0, 4, 5}}));
  EXPECT_THROW(text_windows(std::span(text).first(1), 16), Error);
  EXPECT_THROW(text_windows(text, 1), Error);
  EXPECT_EQ(text_windows(std::span(text).first(1), 16, 0), (Windows{{0, 1}}));
}

// Against the definition, window by window, and over the tokens alone for a text shorter than a window.
TEST(Perplexity, counts_the_second_half_of_full_windows) {
  LoadedForTest loaded(golden_model("llama"), {});
  const std::vector<TokenId> text = random_tokens_for_test(4, 50);
  const Perplexity result = measure_perplexity(&loaded.engine, text, 16);
  EXPECT_EQ(result.windows, 3U);
  EXPECT_EQ(result.tokens, 21U);
  double sum = 0;
  std::vector<double> means;
  for (size_t w = 0; w < 3; ++w) {
    const auto part = std::span(text).subspan(16 * w, 16);
    const std::vector<TokenId> window(part.begin(), part.end());
    const std::vector<float> logits = loaded.logits(window);
    double own = 0;
    for (size_t t = 9; t < 16; ++t) {
      double total = 0;
      for (size_t v = 0; v < 256; ++v) total += std::exp(static_cast<double>(logits[(t - 1) * 256 + v]));
      own += std::log(total) - static_cast<double>(logits[(t - 1) * 256 + static_cast<size_t>(window[t])]);
    }
    sum += own;
    means.push_back(own / 7);
  }
  EXPECT_NEAR(result.mean_nll, sum / 21, 1e-10);
  EXPECT_NEAR(result.perplexity(), std::exp(sum / 21), 1e-8);
  const double mean = sum / 21;
  const double squares = std::pow(means[0] - mean, 2) + std::pow(means[1] - mean, 2) + std::pow(means[2] - mean, 2);
  EXPECT_NEAR(result.standard_error, std::sqrt(squares / 2 / 3), 1e-10);
  EXPECT_EQ(measure_perplexity(&loaded.engine, std::span(text).first(10), 16).tokens, 4U);
  EXPECT_EQ(measure_perplexity(&loaded.engine, std::span(text).first(2), 16).tokens, 1U);
}

// The sink hears every token but the first, whether it is counted or not; streamed or resident, the same.
TEST(Perplexity, every_token_is_heard_and_streaming_changes_nothing) {
  const EngineOptions options;
  LoadedForTest loaded(golden_model("qwen3_moe_int4"), options);
  const Windows windows = {random_tokens_for_test(1, 40), random_tokens_for_test(2, 1), random_tokens_for_test(3, 9)};
  std::vector<TokenScore> resident, streamed;
  PerplexityMeter first(windows, true, [&](const TokenScore& score) { resident.push_back(score); });
  run_windows(&loaded.engine, windows, &first);
  PerplexityMeter second(windows, false, [&](const TokenScore& score) { streamed.push_back(score); });
  score(loaded.checkpoint, loaded.model, options, windows, &loaded.pool,
        [&](uint64_t window, uint64_t from, uint64_t count, std::span<const float> logits) {
          second.add(window, from, count, logits);
        });
  ASSERT_EQ(resident.size(), 39U + 8);
  ASSERT_EQ(streamed.size(), resident.size());
  for (size_t i = 0; i < resident.size(); ++i) {
    EXPECT_EQ(resident[i].nll, streamed[i].nll);
    EXPECT_EQ(resident[i].best, streamed[i].best);
    EXPECT_EQ(resident[i].position, streamed[i].position);
    EXPECT_EQ(resident[i].token, windows[resident[i].window][resident[i].position]);
    EXPECT_TRUE(resident[i].counted);
    EXPECT_EQ(streamed[i].counted, streamed[i].position > (streamed[i].window == 0 ? 20U : 4U));
  }
  EXPECT_EQ(first.result().tokens, 47U);
  EXPECT_EQ(first.result().windows, 2U);
  EXPECT_EQ(second.result().tokens, 19U + 4);
}

}  // namespace
}  // namespace nibble
