// Which weights are rounded to low bits, and whether they can be: asked before a step is trained.
#pragma once

#include <string>
#include <vector>

#include "nibble/numerics/encoded.h"
#include "nibble/train/loop/config.h"
#include "nibble/train/model/trained_tensors.h"

namespace nibble {

// The configuration's roles; without any, routed experts, or dense MLPs where there are no experts.
std::vector<Role> rounded_roles(const TrainedTensors& tensors, const RoundingConfig& rounding);

// One entry a tensor. Error naming tensor, width and group for a matrix whose rows are no whole number of groups, for a
// role that no matrix of the model has, and for one that `quantize` never rounds.
std::vector<bool> low_bit_tensors(const TrainedTensors& tensors, const RoundingConfig& rounding);

// How the layout that is exported holds a second-level scale; kNone for formats without one.
SecondLevel second_level_of(const TrainedTensors& tensors, const RoundingConfig& rounding);
// Do all experts of a stack share it?
bool slices_share_scale(const TrainedTensors& tensors, const RoundingConfig& rounding);
// The layout: the configuration's, or what `quantize` chooses for this family and format.
std::string layout_of_export(const TrainedTensors& tensors, const RoundingConfig& rounding);

}  // namespace nibble
