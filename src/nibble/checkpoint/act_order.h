// Act-order: columns that were quantized in another order than they lie in, so that a column's scale does not follow
// from its place and a stored index names it.
#pragma once

#include "nibble/checkpoint/convention.h"

namespace nibble {

// Reads the stored index if there is one. False for those that say what the place says anyway, as many writers store
// them. Error if it points past the scales.
bool has_act_order(const Checkpoint& checkpoint, const Weight& weight);

}  // namespace nibble
