// A scale rule as somebody would add one: the smallest power of two under which nothing saturates.
#include "nibble/numerics/rules/block_rule.h"

namespace nibble {
namespace {

bool applies(const Format& format) { return format.element == Element::kInt4 && format.scale == ScaleType::kE8M0; }

struct Formula : AmaxFormula {
  static constexpr int8_t kLow = -7, kHigh = 7;
  using AmaxFormula::AmaxFormula;

  template <ScaleType kType>
  uint32_t stored(const BlockStats& stats) const {
    return scale_encode<kType>(stats.amax == 0 ? 1.0f : stats.amax / 7.0f);
  }
};

}  // namespace

extern const ScaleRule kCanaryScaleRule;
const ScaleRule kCanaryScaleRule = rule_from<Formula>("canary.amax", "amax / 7, rounded up to a power of two", applies);

}  // namespace nibble
