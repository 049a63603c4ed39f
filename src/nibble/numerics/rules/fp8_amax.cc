// fp8.amax: amax / 448, rounded to the stored float type.
#include "nibble/numerics/rules/fp8_rule.h"

namespace nibble {
namespace {

struct Formula {
  static constexpr int8_t kLow = 0, kHigh = 0;
  Formula(const Format&, const TensorScale&) {}

  template <ScaleType kType>
  uint32_t stored(float amax) const {
    return scale_encode<kType>(amax_scale(amax, kE4m3Max));
  }
};

bool applies(const Format& format) { return format.element == Element::kE4M3 && has_float_scale(format); }

}  // namespace

extern const ScaleRule kFp8Amax;
const ScaleRule kFp8Amax = {.name = "fp8.amax",
                            .summary = "amax / 448",
                            .applies = applies,
                            .tensor_scale = Fp8Rule<Formula>::tensor_scale,
                            .block_scale = Fp8Rule<Formula>::block_scale,
                            .block_scales = Fp8Rule<Formula>::block_scales};

}  // namespace nibble
