#include "nibble/engine/perplexity.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "nibble/base/error.h"
#include "nibble/base/rng.h"

namespace nibble {
namespace {

TEST(Perplexity, likelihood_of_a_token) {
  const std::array logits = {1.0F, 2.0F, 3.0F};
  const double sum = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
  EXPECT_NEAR(negative_log_likelihood(logits, 1), -std::log(std::exp(2.0) / sum), 1e-12);
  // No overflow.
  EXPECT_NEAR(negative_log_likelihood(std::array{1000.0F, 0.0F}, 0), 0, 1e-12);
}

// Against the definition, window by window, and over the tokens alone for a text shorter than a window.
TEST(Perplexity, counts_the_second_half_of_full_windows) {
  const Path folder = Path(NIBBLE_SOURCE_DIR) / "tests/golden/models/llama";
  const Checkpoint checkpoint = Checkpoint::open(folder);
  Findings findings;
  const Model model = load_model(checkpoint, &findings);
  ThreadPool pool(2);
  Engine engine(checkpoint, model, {}, &pool);
  std::vector<TokenId> text;
  for (uint64_t i = 0; i < 50; ++i) text.push_back(static_cast<TokenId>(random_bits(4, i) % 256));
  const Perplexity result = measure_perplexity(&engine, text, 16);
  EXPECT_EQ(result.windows, 3U);
  EXPECT_EQ(result.tokens, 24U);
  double sum = 0;
  for (size_t w = 0; w < 3; ++w) {
    CachedSequence sequence = engine.make_sequence();
    const EngineInput input{&sequence, std::span(text).subspan(16 * w, 16), true};
    const std::span<const float> logits = engine.run(std::span(&input, 1));
    for (size_t t = 8; t < 16; ++t) {
      sum += negative_log_likelihood(logits.subspan((t - 1) * 256, 256), text[16 * w + t]);
    }
  }
  EXPECT_NEAR(result.mean_nll, sum / 24, 1e-12);
  EXPECT_NEAR(result.perplexity(), std::exp(sum / 24), 1e-9);
  EXPECT_GT(result.standard_error, 0);
  EXPECT_EQ(measure_perplexity(&engine, std::span(text).first(10), 16).tokens, 5U);
  EXPECT_THROW(measure_perplexity(&engine, std::span(text).first(1), 16), Error);
}

}  // namespace
}  // namespace nibble
