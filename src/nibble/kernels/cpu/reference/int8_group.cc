#include "nibble/kernels/cpu/int8_group.h"

#include <algorithm>
#include <cmath>

#include "nibble/numerics/activations.h"

namespace nibble {
namespace {

constexpr uint64_t kOct = 8;

template <uint64_t kGroup, bool kInterleaved>
Int8Group quantize(const float* x, int8_t* codes) {
  // Magnitudes of anything that is not finite are kept: a maximum that skips NaN would lose them.
  float amax = 0;
  bool finite = true;
  for (uint64_t i = 0; i < kGroup; ++i) {
    finite = finite && std::isfinite(x[i]);
    amax = std::max(amax, std::fabs(x[i]));
  }
  Int8Group group{activation_scale(finite ? amax : bits_float(kFloatInf), 0, kInt8Range, false), 0};
  for (uint64_t i = 0; i < kGroup; ++i) {
    const uint64_t oct = i / kOct * kOct;
    const uint64_t at = kInterleaved ? oct + (i % 2) * (kOct / 2) + (i % kOct) / 2 : i;
    const auto code = finite ? static_cast<int8_t>(round_to_int(x[i] / group.scale, -kInt8Range, kInt8Range))
                             : static_cast<int8_t>(kInt8Range);
    codes[at] = code;
    group.sum += code;
  }
  return group;
}

}  // namespace

Int8GroupLoop int8_group_loop_reference(uint64_t group, bool interleaved) {
  if (group == 16) return interleaved ? quantize<16, true> : quantize<16, false>;
  if (group == 32) return interleaved ? quantize<32, true> : quantize<32, false>;
  return nullptr;
}

}  // namespace nibble
