#include <array>

#include "nibble/verify/rule.h"

namespace nibble {

extern const Rule kNonFinite, kZeroScale, kAllZero, kScaleDirection, kScaleOrder, kCodeEncoding, kNibbleOrder,
    kGateUpScale, kMixedFormats, kQuantizedRouter, kPackedWithoutHome, kParallelCut, kConfigContradiction,
    kManifestHash, kAgainst;

std::span<const Rule* const> rules() {
  static constexpr auto kRules = std::to_array<const Rule*>({
      &kNonFinite,
      &kZeroScale,
      &kAllZero,
      &kScaleDirection,
      &kScaleOrder,
      &kCodeEncoding,
      &kNibbleOrder,
      &kGateUpScale,
      &kMixedFormats,
      &kQuantizedRouter,
      &kPackedWithoutHome,
      &kParallelCut,
      &kConfigContradiction,
      &kManifestHash,
      &kAgainst,
  });
  return kRules;
}

}  // namespace nibble
