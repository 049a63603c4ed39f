#include "nibble/quantize/unify_scales.h"

#include <algorithm>
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

UnifyReport rescale(EncodedMatrix& matrix, const TensorScale& shared) {
  UnifyReport report;
  const double ratio = multiplier(matrix.tensor_scale) / multiplier(shared);
  matrix.tensor_scale = shared;
  if (ratio == 1) return report;
  for (std::byte& stored : matrix.scales) {
    const auto before = static_cast<uint8_t>(stored);
    const auto after = e4m3_encode(static_cast<float>(static_cast<double>(e4m3_decode(before)) * ratio));
    stored = static_cast<std::byte>(after);
    report.changed += before != after ? 1 : 0;
    const double wanted = static_cast<double>(e4m3_decode(before)) * ratio;
    if (wanted > 0)
      report.largest_relative_change =
          std::max(report.largest_relative_change, std::abs(static_cast<double>(e4m3_decode(after)) / wanted - 1));
  }
  return report;
}

}  // namespace

std::vector<UnifyReport> unify_second_level(std::vector<EncodedMatrix>& matrices) {
  NIBBLE_CHECK(!matrices.empty());
  const auto largest =
      std::max_element(matrices.begin(), matrices.end(), [](const EncodedMatrix& a, const EncodedMatrix& b) {
        return multiplier(a.tensor_scale) < multiplier(b.tensor_scale);
      });
  const TensorScale shared = largest->tensor_scale;
  std::vector<UnifyReport> reports;
  for (EncodedMatrix& matrix : matrices) {
    NIBBLE_CHECK(matrix.format.two_level && matrix.format.scale == ScaleType::kE4M3);
    reports.push_back(rescale(matrix, shared));
  }
  return reports;
}

}  // namespace nibble
