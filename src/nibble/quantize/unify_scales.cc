#include "nibble/quantize/unify_scales.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "nibble/base/check.h"
#include "nibble/numerics/codec/e4m3.h"

namespace nibble {
namespace {

// The second level as a multiplier, in float64 so that both directions compare exactly enough.
double multiplier(const TensorScale& scale) {
  return scale.level == SecondLevel::kDivide ? 1.0 / static_cast<double>(scale.value)
                                             : static_cast<double>(scale.value);
}

}  // namespace

ScaleChanges rescale(EncodedMatrix& matrix, const TensorScale& shared) {
  ScaleChanges changes;
  const double ratio = multiplier(matrix.tensor_scale) / multiplier(shared);
  // Of matrices that decode to nothing but zeros or infinities there is nothing to make equal.
  if (ratio == 1 || !std::isfinite(ratio)) return changes;
  changes.second_scales.push_back({0, matrix.tensor_scale.value, shared.value});
  matrix.tensor_scale = shared;
  // What becomes of a block scale depends on its byte alone.
  std::array<uint64_t, 256> blocks{};
  std::array<uint8_t, 256> after{};
  for (size_t code = 0; code < after.size(); ++code) {
    const auto before = static_cast<double>(e4m3_decode(static_cast<uint8_t>(code)));
    after[code] = e4m3_encode(static_cast<float>(before * ratio));
  }
  for (std::byte& stored : matrix.scales) {
    const auto code = static_cast<uint8_t>(stored);
    ++blocks[code];
    stored = static_cast<std::byte>(after[code]);
  }
  for (size_t code = 0; code < blocks.size(); ++code) {
    if (blocks[code] == 0) continue;
    const auto from = static_cast<uint8_t>(code);
    const double wanted = static_cast<double>(e4m3_decode(from)) * ratio;
    if (from != after[code]) changes.blocks[{from, after[code]}] += blocks[code];
    if (wanted > 0)
      changes.largest_relative_change = std::max(changes.largest_relative_change,
                                                 std::abs(static_cast<double>(e4m3_decode(after[code])) / wanted - 1));
  }
  return changes;
}

std::vector<ScaleChanges> unify_second_level(std::vector<EncodedMatrix>& matrices) {
  NIBBLE_CHECK(!matrices.empty());
  const auto largest =
      std::max_element(matrices.begin(), matrices.end(), [](const EncodedMatrix& a, const EncodedMatrix& b) {
        return multiplier(a.tensor_scale) < multiplier(b.tensor_scale);
      });
  const TensorScale shared = largest->tensor_scale;
  std::vector<ScaleChanges> reports;
  for (EncodedMatrix& matrix : matrices) {
    NIBBLE_CHECK(matrix.format.two_level && matrix.format.scale == ScaleType::kE4M3);
    reports.push_back(rescale(matrix, shared));
  }
  return reports;
}

}  // namespace nibble
