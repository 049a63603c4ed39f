// The rules of `nibble verify`, in the order in which they run. Rows and nothing else; a row is a file of rules/.
#include "nibble/verify/rule.h"

#define NIBBLE_VERIFY_RULES(ROW) \
  ROW(kNonFinite)                \
  ROW(kZeroScale)                \
  ROW(kCacheScale)               \
  ROW(kAllZero)                  \
  ROW(kCodeHole)                 \
  ROW(kScaleOutlier)             \
  ROW(kScaleDirection)           \
  ROW(kScaleOrder)               \
  ROW(kCodeEncoding)             \
  ROW(kNibbleOrder)              \
  ROW(kGateUpScale)              \
  ROW(kMixedFormats)             \
  ROW(kQuantizedRouter)          \
  ROW(kPackedWithoutHome)        \
  ROW(kParallelCut)              \
  ROW(kConfigContradiction)      \
  ROW(kConfigScheme)             \
  ROW(kInputScale)               \
  ROW(kManifestHash)             \
  ROW(kAgainst)

namespace nibble {

#define ROW(rule) extern const Rule rule;
NIBBLE_VERIFY_RULES(ROW)
#undef ROW

std::span<const Rule* const> rules() {
#define ROW(rule) &rule,
  static const Rule* const list[] = {NIBBLE_VERIFY_RULES(ROW)};
#undef ROW
  return list;
}

}  // namespace nibble
