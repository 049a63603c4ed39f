// One step of a block-scaled tensor core as it was modelled from the outside: 64 products of four-bit floats in four
// groups of 16, added to an accumulator. Not verified on hardware by us: the vectors that it is held to come from the
// model's own program (mmasim), see tests/golden/kernels.
//
// Every group's exact sum, times its two scales' significands, and the accumulator are aligned to the largest exponent
// among them (a group's is that of its scales alone), cut toward zero to 35 bits behind the point, added exactly, and
// cut toward zero to float32.
#pragma once

#include <cstdint>

namespace nibble {

struct TensorCoreGroup {
  double sum = 0;         // of 16 products, exact
  bool all_zero = false;  // every product is zero (a sum that cancels is not)
  float weight_scale = 1, activation_scale = 1;
  int scale_exponent = -127;  // of the scale type's subnormals: -127 for E8M0, -6 for E4M3
};

inline constexpr uint64_t kTensorCoreGroups = 4;
inline constexpr uint64_t kTensorCoreGroup = 16;

// `groups` holds kTensorCoreGroups.
float tensor_core_step(const TensorCoreGroup* groups, float accumulator);

}  // namespace nibble
