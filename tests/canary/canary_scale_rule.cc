// A scale rule as somebody would add one: the smallest power of two under which nothing saturates.
#include "nibble/numerics/rules/amax_rule.h"

namespace nibble {
namespace {

bool applies(const Format& format) { return format.element == Element::kInt4 && format.scale == ScaleType::kE8M0; }

struct Formula {
  static constexpr int8_t kLow = -7, kHigh = 7;
  Formula(const Format& /*format*/, const TensorScale& /*tensor_scale*/) {}

  template <ScaleType kType>
  uint32_t stored(float amax) const {
    return scale_encode<kType>(amax == 0 ? 1.0f : amax / 7.0f);
  }
};

}  // namespace

extern const ScaleRule kCanaryScaleRule;
const ScaleRule kCanaryScaleRule = {.name = "canary.amax",
                                    .summary = "amax / 7, rounded up to a power of two",
                                    .applies = applies,
                                    .block_scale = AmaxRule<Formula>::block_scale,
                                    .block_scales = AmaxRule<Formula>::block_scales};

}  // namespace nibble
