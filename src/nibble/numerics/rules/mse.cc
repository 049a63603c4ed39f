#include "nibble/numerics/rules/mse.h"

#include "nibble/numerics/scale_codec.h"

namespace nibble {
namespace {

int neighbours(const Format& format, const BlockScale& chosen, int below, int above, int smallest, int largest,
               BlockScale* out) {
  int count = 0;
  const int middle = static_cast<int>(chosen.stored);
  for (int code = middle - below; code <= middle + above; ++code) {
    if (code == middle || code < smallest || code > largest) continue;
    BlockScale candidate = chosen;
    candidate.stored = static_cast<uint32_t>(code);
    candidate.value = scale_decode(format.scale, candidate.stored);
    out[count++] = candidate;
  }
  return count;
}

// Each time another factor of the scale, rounded to the stored type.
int scaled(const Format& format, const BlockScale& chosen, float factor, BlockScale* out) {
  BlockScale candidate = chosen;
  candidate.stored = scale_encode(format.scale, chosen.value * factor);
  candidate.value = scale_decode(format.scale, candidate.stored);
  const bool usable = candidate.value > 0 && is_finite(candidate.value);
  if (usable) *out = candidate;
  return usable ? 1 : 0;
}

}  // namespace

int mse_candidates(const Format& format, const ScaleRule& rule, const BlockScale& chosen, BlockScale* out) {
  if (format.scale == ScaleType::kE8M0) return neighbours(format, chosen, 1, 1, 0, kE8m0MaxCode, out);
  if (format.scale == ScaleType::kE4M3) return neighbours(format, chosen, 8, 5, 1, kE4m3MaxCode, out);
  int count = 0;
  if (rule.powers_of_two) {
    for (const float factor : {0.5f, 2.0f}) count += scaled(format, chosen, factor, out + count);
    return count;
  }
  for (int i = 31; i >= 16; --i) count += scaled(format, chosen, static_cast<float>(i) / 32.0f, out + count);
  return count;
}

}  // namespace nibble
