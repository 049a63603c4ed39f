// Whether a candidate is the reference's model, so that one's choices may be set beside the other's.
#pragma once

#include <string>

#include "nibble/models/model_spec.h"

namespace nibble {

// Error naming the first size that differs, with both numbers.
void check_same_architecture(const ModelSpec& reference, const ModelSpec& candidate, const std::string& candidate_path);

}  // namespace nibble
