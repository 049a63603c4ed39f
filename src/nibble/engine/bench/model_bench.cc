#include "nibble/engine/bench/model_bench.h"

#include <algorithm>
#include <string>

#include "nibble/base/rng.h"
#include "nibble/base/stopwatch.h"
#include "nibble/engine/bench/measure.h"
#include "nibble/engine/bench/random_cache.h"
#include "nibble/engine/generate.h"

namespace nibble {
namespace {

// The reference takes seconds a token of a large model.
constexpr uint64_t kCheckedTokens = 4;
// Enough for the kernels' widest panels.
constexpr uint64_t kCheckedPrompt = 32;

}  // namespace

std::vector<TokenId> ModelBench::random_tokens(uint64_t seed, uint64_t count) const {
  std::vector<TokenId> tokens(count);
  for (uint64_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<TokenId>(random_bits(seed, i) % engine_->spec().vocabulary);
  }
  return tokens;
}

std::vector<float> ModelBench::logits(CachedSequence* sequence, std::span<const TokenId> tokens) {
  const EngineInput input{sequence, tokens, true};
  const std::span<const float> all = engine_->run(std::span(&input, 1));
  return {all.begin(), all.end()};
}

double ModelBench::check() {
  const std::vector<TokenId> tokens = random_tokens(3, kCheckedPrompt);
  const std::span<const TokenId> few = std::span(tokens).first(kCheckedTokens);
  const auto alone = [&](std::span<const TokenId> some) {
    CachedSequence sequence = engine_->make_sequence();
    return logits(&sequence, some);
  };
  check_positions(engine_->spec(), tokens.size());
  const std::vector<float> prompt = alone(tokens);
  CachedSequence sequence = engine_->make_sequence();
  logits(&sequence, few.first(few.size() - 1));
  const std::vector<float> decoded = logits(&sequence, few.last(1));
  const std::string chosen = engine_->options().arithmetic.kernel;
  engine_->set_kernel("reference");
  const std::vector<float> wanted = alone(few);
  engine_->set_kernel(chosen);
  LargestError error;
  error.add(prompt, wanted);
  error.add(decoded, std::span(wanted).last(decoded.size()));
  return error.share();
}

PassRow ModelBench::prefill(uint64_t tokens) {
  check_positions(engine_->spec(), tokens);
  const std::vector<TokenId> prompt = random_tokens(1, tokens);
  PassRow row{"prefill", tokens, 0, 0, 0, {}};
  std::vector<double> seconds;
  for (double spent = 0; seconds.empty() || spent < seconds_; spent += seconds.back()) {
    CachedSequence sequence = engine_->make_sequence();
    row.steps.assign(1, prefill_attention(engine_->spec(), engine_->options().cache, tokens));
    double sum = 0;
    for (uint64_t at = 0; at < tokens; at += kPrefillTokens) {
      const std::span<const TokenId> some = std::span(prompt).subspan(at, std::min(kPrefillTokens, tokens - at));
      const EngineInput input{&sequence, some, false};
      const Stopwatch watch;
      engine_->run(std::span(&input, 1));
      sum += watch.seconds();
      row.steps.insert(row.steps.end(), engine_->work().begin(), engine_->work().end());
    }
    seconds.push_back(sum);
  }
  row.runs = seconds.size();
  row.seconds = median(seconds);
  return row;
}

PassRow ModelBench::decode(uint64_t context, uint64_t tokens) {
  check_positions(engine_->spec(), context + tokens + 1);
  const std::vector<TokenId> answer = random_tokens(2, tokens + 1);
  CachedSequence sequence = engine_->make_sequence();
  fill_randomly(engine_->spec().layers.size(), context, pool_, &sequence);
  const auto step = [&](uint64_t i) {
    const EngineInput input{&sequence, std::span(answer).subspan(i, 1), false};
    engine_->run(std::span(&input, 1));
  };
  step(0);  // makes what later passes find
  OpWork work;
  double spent = 0;
  for (uint64_t i = 1; i <= tokens; ++i) {
    work += decode_attention(engine_->spec(), engine_->options().cache, sequence.tokens());
    const Stopwatch watch;
    step(i);
    spent += watch.seconds();
    work += sum_of(engine_->work());
  }
  const double count = static_cast<double>(tokens);
  // A pass of one token is one step: what it reads while it multiplies it need not read later.
  return {"decode",      1,
          context,       tokens,
          spent / count, {{work.int8_flops / count, work.f32_flops / count, work.bytes / count}}};
}

}  // namespace nibble
