// Statistics over stored scales of any type (weight_stats.h's ScaleStats).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "nibble/checkpoint/dtype.h"
#include "nibble/numerics/format.h"
#include "nibble/verify/weight_stats.h"

namespace nibble {

// Adds the scales in `stored` (of `type`, unaligned); the first has flat index `first_index`. A negative zero counts as
// zero, not as negative.
void add_scales(std::span<const std::byte> stored, ScaleType type, uint64_t first_index, ScaleStats* stats);

// How the elements of a stored tensor that holds scales of `format` are to be read; nullopt if the container's type
// does not say (scales inside a container's own blocks).
std::optional<ScaleType> stored_scale_type(Dtype dtype, const Format& format);

}  // namespace nibble
