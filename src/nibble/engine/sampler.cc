#include "nibble/engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "nibble/base/rng.h"

namespace nibble {
namespace {

struct Candidate {
  TokenId id = 0;
  double log_p = 0;  // after temperature; up to a constant
};

std::optional<TokenId> largest(std::span<const float> logits) {
  std::optional<size_t> best;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) continue;
    if (!best || logits[i] > logits[*best]) best = i;
  }
  return best ? std::optional<TokenId>(static_cast<TokenId>(*best)) : std::nullopt;
}

bool more_probable(const Candidate& a, const Candidate& b) {
  return a.log_p != b.log_p ? a.log_p > b.log_p : a.id < b.id;
}

// Keeps the most probable tokens that top_k and top_p leave.
void cut(const SamplerOptions& options, std::vector<Candidate>* candidates) {
  const bool by_count = options.top_k != 0 && options.top_k < candidates->size();
  if (!by_count && options.top_p >= 1) return;
  std::sort(candidates->begin(), candidates->end(), more_probable);
  if (by_count) candidates->resize(options.top_k);
  if (options.top_p >= 1) return;
  const double top = candidates->front().log_p;
  double total = 0, sum = 0;
  for (const Candidate& one : *candidates) total += std::exp(one.log_p - top);
  size_t kept = 0;
  while (kept < candidates->size() && (kept == 0 || sum < options.top_p * total)) {
    sum += std::exp((*candidates)[kept++].log_p - top);
  }
  candidates->resize(kept);
}

double gumbel(const SamplerOptions& options, uint64_t chain, uint64_t position, TokenId id) {
  const uint64_t stream = random_bits(random_bits(options.seed, chain), position);
  // In (0, 1): neither logarithm is of 0.
  const double u = random_uniform(stream, static_cast<uint64_t>(id)) + 0x1p-54;
  return -std::log(-std::log(u));
}

}  // namespace

std::optional<TokenId> choose_token(std::span<const float> logits, const SamplerOptions& options, uint64_t chain,
                                    uint64_t position) {
  if (options.temperature <= 0) return largest(logits);
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double log_p = static_cast<double>(logits[i]) / options.temperature;
    if (!std::isnan(log_p) && log_p != -std::numeric_limits<double>::infinity()) {
      candidates.push_back({static_cast<TokenId>(i), log_p});
    }
  }
  if (candidates.empty()) return largest(logits);
  cut(options, &candidates);
  for (Candidate& one : candidates) one.log_p += gumbel(options, chain, position, one.id);
  return std::min_element(candidates.begin(), candidates.end(), more_probable)->id;
}

}  // namespace nibble
