// Where and how a candidate leaves each chain, and what its choices come to over all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "nibble/certify/judge.h"
#include "nibble/certify/statistics/chain_end.h"

namespace nibble {

enum class DivergenceKind : uint8_t {
  kForked,        // another token
  kStoppedEarly,  // an end token where the chain goes on
  kRanOn,         // another token where the chain ends
};
std::string_view divergence_kind_name(DivergenceKind kind);  // "forked", "stopped early", "ran on"

struct ChainDivergence {
  std::optional<uint64_t> first;  // chosen tokens before it, from 0; nullopt: reproduced whole
  DivergenceKind kind = DivergenceKind::kForked;
  uint64_t length = 0;  // chosen tokens of the chain
  bool capped = false;
  uint64_t cluster = 0;
};

ChainDivergence divergence_of(const Chain& chain, const JudgedChain& judged, std::span<const TokenId> end_tokens);

// As the curves take them (chain_end.h).
std::vector<ChainEnd> chain_ends(std::span<const ChainDivergence> divergences);

// Over all positions, diverged or not: each is judged behind the reference's own tokens.
struct ChoiceTotals {
  uint64_t tokens = 0, flips = 0;   // choices that are not the chain's token
  uint64_t flips_within_noise = 0;  // of them: the reference's two best were no further apart than `noise`
  uint64_t reference_flips = 0;     // choices of the reference that are not the chain's: 0 for chains it wrote itself
  double kl_mean = 0, kl_median = 0, kl_p99 = 0, kl_max = 0;  // nats a token
  double log_p_mean_difference = 0;  // reference's less candidate's log p of the chains' tokens, nats a token
  double flip_rate() const { return tokens == 0 ? 0 : static_cast<double>(flips) / static_cast<double>(tokens); }
};

// `noise`: logits that two arithmetic paths of the reference may differ by (measured_noise()).
ChoiceTotals choice_totals(std::span<const JudgedChain> chains, double noise);

// The largest difference that `other`, the reference on another arithmetic path, made to a margin of its two best
// logits.
struct Noise {
  double largest = 0, p99 = 0;  // of |margin - margin on the other path|, logits
  uint64_t tokens = 0, flips = 0;
};
Noise measured_noise(std::span<const JudgedChain> other);

// S(n), the mean over chains of Π min(1, p_candidate / p_reference) over their first n choices, for chains that
// somebody else's sampler wrote: index n - 1 holds S(n); chains that have ended keep their product.
std::vector<double> expected_agreement(std::span<const JudgedChain> chains);

}  // namespace nibble
