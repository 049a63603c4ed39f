// The search behind the prefix "mse.": scales near the one that a rule chose, each tried on the whole block; the
// smallest sum of squared errors wins, the rule's own on ties, so a search is never worse than its rule. Zero points
// and clamps stay the rule's.
//
//   E8M0         one power of two below and one above
//   E4M3         the 8 codes below and the 5 above (half to 1.5 times the scale)
//   float types  i/32 of the scale for i = 31 … 16, each rounded to the stored type; half and twice the scale where the
//                rule gives powers of two alone
#pragma once

#include "nibble/numerics/scale_rule.h"

namespace nibble {

inline constexpr int kMaxMseCandidates = 16;

// Writes the candidates beside `chosen` in the order in which they are tried; returns how many.
int mse_candidates(const Format& format, const ScaleRule& rule, const BlockScale& chosen, BlockScale* out);

}  // namespace nibble
