// A layer's weights by role, so that a pass may take those of one role from another checkpoint of the model. A
// projection's bias goes with it.
#pragma once

#include <span>
#include <vector>

#include "nibble/engine/weights/model_weights.h"
#include "nibble/models/role.h"

namespace nibble {

// Roles that a layer may have weights of, as a pass meets them.
std::span<const Role> layer_roles();
bool has_role(const LayerWeights& weights, Role role);

// Whether both give the same bits whatever they are multiplied with: equal layouts and bytes. Weights of equal values
// in different formats are not the same.
bool same_weights(const Linear& a, const Linear& b);
bool same_weights(const LayerWeights& a, const LayerWeights& b, Role role);

// `to` gets `from`'s weights of a role; they share memory.
void take_weights(const LayerWeights& from, Role role, LayerWeights* to);

}  // namespace nibble
