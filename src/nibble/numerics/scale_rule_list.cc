// The list of scale rules, in the order of --help. Rows and nothing else.
#include "nibble/numerics/scale_rule.h"

#define NIBBLE_SCALE_RULES(ROW) \
  ROW(kInt4Amax75)              \
  ROW(kInt4Amax7)               \
  ROW(kInt4Asym)                \
  ROW(kInt4Extreme8)            \
  ROW(kMxEven)                  \
  ROW(kMxFloor)                 \
  ROW(kMxRceil)                 \
  ROW(kMxCeil)                  \
  ROW(kNvTwoLevel)              \
  ROW(kNvCt)                    \
  ROW(kNvFourSix)               \
  ROW(kNvSingle)                \
  ROW(kFp8Amax)                 \
  ROW(kFp8Ue8m0)                \
  ROW(kInt8Amax)

namespace nibble {

#define ROW(rule) extern const ScaleRule rule;
NIBBLE_SCALE_RULES(ROW)
#undef ROW

std::span<const ScaleRule* const> scale_rules() {
#define ROW(rule) &rule,
  static const ScaleRule* const rules[] = {NIBBLE_SCALE_RULES(ROW)};
#undef ROW
  return rules;
}

}  // namespace nibble
