// After how many tokens half of the answers have left the reference: as measured, and as the rate of flips alone
// implies.
#pragma once

#include <cstdint>
#include <optional>

#include "nibble/certify/statistics/chain_end.h"

namespace nibble {

struct ImpliedHorizon {
  double tokens = 0;  // n½ = ln ½ / ln(1 - f), f = flips / tokens; 1 % gives 69.0, every token a flip 0
  // No flip: f = 0 would give infinity, so `tokens` is a lower bound instead. Without a flip in N tokens f >= 1 -
  // 0.05^(1/N) is excluded at 95 %, and so n½ > N ln ½ / ln 0.05 = 0.231 N.
  bool at_least = false;
};

// Exact only for independent flips of constant hazard. Error for no tokens or more flips than tokens.
ImpliedHorizon implied_horizon(uint64_t flips, uint64_t tokens);

// The first time at which agreement_survival() is ½ or less, roundings of 1e-12 apart; nullopt: it stays above.
std::optional<uint64_t> measured_horizon(const Curve& survival);

}  // namespace nibble
