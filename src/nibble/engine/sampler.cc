#include "nibble/engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "nibble/base/rng.h"
#include "nibble/engine/top_two.h"

namespace nibble {
namespace {

struct Candidate {
  TokenId id = 0;
  double log_p = 0;  // after temperature; up to a constant
};

std::optional<TokenId> largest(std::span<const float> logits) {
  const TokenId best = top_two(logits).best;
  return best < 0 ? std::nullopt : std::optional(best);
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

// Noise is -log(-log u), and -log u is at least 1 - u: noise above x needs 1 - u < e^-x. Nearly all tokens of a large
// vocabulary are passed over by that, a comparison instead of two logarithms. e^-x by x's whole part, and a little
// more than the roundings of all of this.
bool may_exceed(double u, double x) {
  constexpr int kMost = 39;  // u is below 1 - 5e-17
  static const auto kBounds = [] {
    std::array<double, kMost> bounds{};
    for (int i = 0; i < kMost; ++i) bounds[static_cast<size_t>(i)] = std::exp(-static_cast<double>(i)) * (1 + 1e-9);
    return bounds;
  }();
  if (x >= kMost) return false;
  return !(x > 0) || 1 - u < kBounds[static_cast<size_t>(x)];
}

// The largest of log p + noise so far.
class Draw {
 public:
  Draw(const SamplerOptions& options, uint64_t chain, uint64_t position)
      : stream_(random_bits(random_bits(options.seed, chain), position)) {}

  void consider(const Candidate& one) {
    // In (0, 1): neither logarithm is of 0.
    const double u = random_uniform(stream_, static_cast<uint64_t>(one.id)) + 0x1p-54;
    if (best_ && !may_exceed(u, best_->log_p - one.log_p)) return;
    const Candidate noisy{one.id, one.log_p - std::log(-std::log(u))};
    if (!best_ || more_probable(noisy, *best_)) best_ = noisy;
  }
  TokenId best() const { return best_->id; }

 private:
  uint64_t stream_;
  std::optional<Candidate> best_;
};

}  // namespace

std::optional<TokenId> choose_token(std::span<const float> logits, const SamplerOptions& options, uint64_t chain,
                                    uint64_t position) {
  if (options.temperature <= 0) return largest(logits);
  std::vector<Candidate> candidates;
  candidates.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const double log_p = static_cast<double>(logits[i]) / options.temperature;
    if (!std::isnan(log_p) && log_p != -std::numeric_limits<double>::infinity()) {
      candidates.push_back({static_cast<TokenId>(i), log_p});
    }
  }
  if (candidates.empty()) return largest(logits);
  cut(options, &candidates);
  Draw draw(options, chain, position);
  // The most probable first: what must be exceeded is high from the start.
  draw.consider(*std::min_element(candidates.begin(), candidates.end(), more_probable));
  for (const Candidate& one : candidates) draw.consider(one);
  return draw.best();
}

}  // namespace nibble
