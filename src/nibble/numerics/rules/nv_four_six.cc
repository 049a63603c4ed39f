// nv.four_six: second level T / 1536, so that a block scale may also be 1.5 times the ordinary one (the block's largest
// magnitude becomes 4 instead of 6, where the grid is finer). The smaller sum of squares wins, the ordinary one on
// ties.
#include "nibble/numerics/rules/nv_rule.h"

namespace nibble {
namespace {

TensorScale tensor_scale(const Format&, float amax, SecondLevel level) {
  const SecondLevel form = nv_level(level, SecondLevel::kMultiply);
  return {form, nv_second_level(amax, kNvFourSixRange, form)};
}

struct Formula : NvFormula {
  using NvFormula::NvFormula;

  template <ScaleType>
  uint32_t stored(const BlockStats& stats) const {
    return nv_four_six_scale(stats.amax, second, 1.0f);
  }
};

int alternatives(const Format&, const BlockStats& stats, const TensorScale& scale, BlockScale* out) {
  if (stats.amax == 0) return 0;
  out[0] = BlockScale{.stored = nv_four_six_scale(stats.amax, nv_second(scale.level, scale.value), 1.5f)};
  out[0].value = scale_decode<ScaleType::kE4M3>(out[0].stored);
  return 1;
}

constexpr ScaleRule four_six() {
  ScaleRule rule =
      nv_rule<Formula>("nv.four_six", "each block's maximum becomes 6 or 4, whichever errs less", tensor_scale);
  rule.alternatives = alternatives;
  return rule;
}

}  // namespace

extern const ScaleRule kNvFourSix;
const ScaleRule kNvFourSix = four_six();

}  // namespace nibble
