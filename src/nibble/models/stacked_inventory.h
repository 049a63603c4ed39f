// A model's parameters with the experts of a layer as one stack, whatever form its releases have: a few thousand
// entries where the files hold half a million. For counting, not for names.
#pragma once

#include <vector>

#include "nibble/models/family.h"

namespace nibble {

// Routed experts are (E, N, K), their biases (E, N), fusion kStackedExperts; MTP layers' too, with role kMtp.
std::vector<ParamSpec> stacked_inventory(const Family& family, const ModelSpec& spec);

}  // namespace nibble
