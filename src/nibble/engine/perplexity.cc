#include "nibble/engine/perplexity.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/engine/top_two.h"
#include "nibble/kernels/cpu/vector/vector_loops.h"

namespace nibble {

double Perplexity::perplexity() const { return std::exp(mean_nll); }

TokenScore score_token(std::span<const float> logits, TokenId token) {
  const auto logit_of = [&](TokenId id) { return id < 0 ? 0 : logits[static_cast<size_t>(id)]; };
  TokenScore score;
  score.token = token;
  score.logit = logit_of(token);
  const TopTwo top = top_two(logits);
  score.best = top.best;
  score.second = top.second;
  score.best_logit = logit_of(top.best);
  score.second_logit = logit_of(top.second);
  const double sum = vector_loops().exp_sum(logits.data(), logits.size(), score.best_logit);
  score.nll = static_cast<double>(score.best_logit) + std::log(sum) - static_cast<double>(score.logit);
  return score;
}

std::vector<std::vector<TokenId>> text_windows(std::span<const TokenId> text, uint64_t context,
                                               std::optional<TokenId> begin) {
  std::vector<TokenId> tokens;
  if (begin) tokens.push_back(*begin);
  tokens.insert(tokens.end(), text.begin(), text.end());
  if (tokens.size() < 2 || context < 2) {
    throw Error("a text of at least two tokens is needed")
        .value("tokens", tokens.size())
        .value("context", context)
        .way_out("give a longer text");
  }
  const uint64_t length = std::min<uint64_t>(context, tokens.size());
  std::vector<std::vector<TokenId>> windows;
  for (uint64_t at = 0; at + length <= tokens.size(); at += length) {
    windows.emplace_back(tokens.begin() + static_cast<ptrdiff_t>(at),
                         tokens.begin() + static_cast<ptrdiff_t>(at + length));
    if (begin) windows.back().front() = *begin;
  }
  return windows;
}

PerplexityMeter::PerplexityMeter(const std::vector<std::vector<TokenId>>& windows, bool every_token, TokenSink sink)
    : windows_(windows),
      every_token_(every_token),
      sink_(std::move(sink)),
      sums_(windows.size()),
      counts_(windows.size()) {}

uint64_t PerplexityMeter::first_counted(uint64_t length) const {
  return every_token_ ? 1 : std::min(length / 2 + 1, length - 1);
}

void PerplexityMeter::add(uint64_t window, uint64_t first, uint64_t count, std::span<const float> logits) {
  const std::vector<TokenId>& tokens = windows_[window];
  const uint64_t vocabulary = logits.size() / count, counted = first_counted(tokens.size());
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t position = first + i + 1;  // of the token that these logits foretell
    const bool is_counted = position >= counted;
    if (position >= tokens.size() || (!is_counted && !sink_)) continue;
    TokenScore score = score_token(logits.subspan(i * vocabulary, vocabulary), tokens[position]);
    score.window = window;
    score.position = position;
    score.counted = is_counted;
    if (sink_) sink_(score);
    if (!is_counted) continue;
    sums_[window] += score.nll;
    ++counts_[window];
  }
}

Perplexity PerplexityMeter::result() const {
  Perplexity result;
  std::vector<double> means;
  double total = 0;
  for (size_t w = 0; w < sums_.size(); ++w) {
    if (counts_[w] == 0) continue;
    total += sums_[w];
    result.tokens += counts_[w];
    means.push_back(sums_[w] / static_cast<double>(counts_[w]));
  }
  result.windows = means.size();
  if (means.empty()) return result;
  result.mean_nll = total / static_cast<double>(result.tokens);
  double squares = 0;
  for (const double mean : means) squares += (mean - result.mean_nll) * (mean - result.mean_nll);
  const auto count = static_cast<double>(means.size());
  if (means.size() > 1) result.standard_error = std::sqrt(squares / (count - 1) / count);
  return result;
}

void run_windows(Engine* engine, const std::vector<std::vector<TokenId>>& windows, PerplexityMeter* meter,
                 const std::function<void(uint64_t, uint64_t)>& progress) {
  for (size_t w = 0; w < windows.size(); ++w) {
    CachedSequence sequence = engine->make_sequence();
    const EngineInput input{&sequence, windows[w], true};
    meter->add(w, 0, windows[w].size(), engine->run(std::span(&input, 1)));
    if (progress) progress(w + 1, windows.size());
  }
}

Perplexity measure_perplexity(Engine* engine, std::span<const TokenId> text, uint64_t context) {
  const std::vector<std::vector<TokenId>> windows = text_windows(text, context);
  PerplexityMeter meter(windows);
  run_windows(engine, windows, &meter);
  return meter.result();
}

}  // namespace nibble
