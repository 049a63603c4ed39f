// An attribution as JSON: the groups, what they rest on, what finding them cost.
#pragma once

#include "nibble/base/json.h"
#include "nibble/certify/attribution.h"

namespace nibble {

Json attribution_json(const Attribution& attribution);        // [{layer, role, tensors, healed, of, …}]
Json attribution_basis_json(const Attribution& attribution);  // {first_divergences, tried, …}
Json attribution_cost_json(const Attribution& attribution);   // {tokens, sweeps, layer_passes, seconds}

}  // namespace nibble
