// A model's parameters with the experts of a layer as one stack, whatever form its releases have: a few thousand
// entries where the files hold half a million. For counting, not for names.
#pragma once

#include <vector>

#include "nibble/models/family.h"

namespace nibble {

// Routed experts are (E, N, K), their biases (E, N), fusion kStackedExperts; MTP layers' too, with role kMtp.
std::vector<ParamSpec> stacked_inventory(const Family& family, const ModelSpec& spec);

// One of the stacks of routed experts: its weights or biases, MTP's included.
inline bool is_expert_stack(const ParamSpec& param) { return param.fusion != Fusion::kNone; }

}  // namespace nibble
