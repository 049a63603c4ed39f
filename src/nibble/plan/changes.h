// What would make a plan fit that does not: each proposal is planned before it is made.
#pragma once

#include <vector>

#include "nibble/plan/plan.h"

namespace nibble {

// At most three changes, of one option each, that fit; the ones that cost least first.
std::vector<Change> propose_changes(const Plan& plan);

}  // namespace nibble
