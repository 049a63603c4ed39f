// Changes that make weights fit which are known by their number alone (`--total`).
#pragma once

#include <vector>

#include "nibble/plan/plan.h"

namespace nibble {

// As propose_changes(), of a plan without a model: formats, numbers of GPUs, devices, the reserve.
std::vector<Change> propose_flat_changes(const Plan& plan);

}  // namespace nibble
