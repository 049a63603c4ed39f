#include "nibble/engine/perplexity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "nibble/base/error.h"

namespace nibble {

double Perplexity::perplexity() const { return std::exp(mean_nll); }

double negative_log_likelihood(std::span<const float> logits, TokenId token) {
  const auto largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum) - static_cast<double>(logits[static_cast<size_t>(token)]);
}

Perplexity measure_perplexity(Engine* engine, std::span<const TokenId> text, uint64_t context,
                              const std::function<void(uint64_t, uint64_t)>& progress) {
  if (text.size() < 2 || context < 2) {
    throw Error("a text of at least two tokens is needed")
        .value("tokens", text.size())
        .value("context", context)
        .way_out("give a longer text");
  }
  const uint64_t length = std::min<uint64_t>(context, text.size()), windows = text.size() / length;
  std::vector<double> means;
  Perplexity result;
  double total = 0;
  for (uint64_t w = 0; w < windows; ++w) {
    const std::span<const TokenId> window = text.subspan(w * length, length);
    CachedSequence sequence = engine->make_sequence();
    const EngineInput input{&sequence, window, true};
    const std::span<const float> logits = engine->run(std::span(&input, 1));
    const uint64_t vocabulary = logits.size() / length;
    double sum = 0;
    const uint64_t first = std::max<uint64_t>(1, length / 2);
    for (uint64_t t = first; t < length; ++t) {
      sum += negative_log_likelihood(logits.subspan((t - 1) * vocabulary, vocabulary), window[t]);
    }
    total += sum;
    result.tokens += length - first;
    means.push_back(sum / static_cast<double>(length - first));
    if (progress) progress(w + 1, windows);
  }
  result.windows = windows;
  result.mean_nll = total / static_cast<double>(result.tokens);
  double squares = 0;
  for (const double mean : means) squares += (mean - result.mean_nll) * (mean - result.mean_nll);
  const auto count = static_cast<double>(windows);
  if (windows > 1) result.standard_error = std::sqrt(squares / (count - 1) / count);
  return result;
}

}  // namespace nibble
