// Why a unit cannot be made: each names the place and a way out, and throws.
#pragma once

#include <cstdint>
#include <string>

#include "nibble/numerics/quantizer.h"
#include "nibble/numerics/recast.h"
#include "nibble/quantize/scale_changes.h"

namespace nibble {

// A slice of an output, and where it comes from.
struct UnitPlace {
  std::string file;    // of the source
  std::string tensor;  // of the output
  std::string source;  // the first weight that goes into it, as patterns know it: of a stack, all or nothing stays
  uint64_t slice = 0;
};

// A NaN or an infinity in row `begin + bad.row`.
[[noreturn]] void refuse_value(const UnitPlace& place, uint64_t begin, const BadValue& bad);
// Finite weights whose scaled codes are not: a scale at the end of its type's range.
[[noreturn]] void refuse_range(const UnitPlace& place, uint64_t row, const ErrorSums& errors);
[[noreturn]] void refuse_tensor_scale(const UnitPlace& place, float amax, float scale);
// A cast whose blocks span more exponents than one second level; `rule` would round.
[[noreturn]] void refuse_span(const UnitPlace& place, const ExponentSpan& span, int max_span, const std::string& rule);
// --unify-scales that would leave nothing of a matrix.
[[noreturn]] void refuse_erased(const UnitPlace& place, const ScaleChanges& changes);
// A layout with one second level for a whole stack.
[[noreturn]] void refuse_differing_scale(const UnitPlace& place, float of_slice_0, float other);

}  // namespace nibble
