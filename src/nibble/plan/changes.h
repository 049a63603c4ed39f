// What would make a plan fit that does not: each proposal is planned before it is made.
#pragma once

#include <cstddef>
#include <vector>

#include "nibble/plan/plan.h"

namespace nibble {

inline constexpr size_t kProposals = 3;

// At most kProposals changes that fit, the ones that cost least first: of one option each where that is enough. What
// they name is within what the options take.
std::vector<Change> propose_changes(const Plan& plan);

}  // namespace nibble
