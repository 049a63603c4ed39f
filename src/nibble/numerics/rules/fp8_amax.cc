// fp8.amax: amax / 448, rounded to the stored float type.
#include "nibble/numerics/rules/fp8_rule.h"

namespace nibble {
namespace {

struct Formula : AmaxFormula {
  using AmaxFormula::AmaxFormula;

  template <ScaleType kType>
  uint32_t stored(const BlockStats& stats) const {
    return scale_encode<kType>(amax_scale(stats.amax, kE4m3Max));
  }
};

bool applies(const Format& format) { return format.element == Element::kE4M3 && has_float_scale(format); }

}  // namespace

extern const ScaleRule kFp8Amax;
const ScaleRule kFp8Amax = fp8_rule<Formula>("fp8.amax", "amax / 448", applies);

}  // namespace nibble
