#include "nibble/quantize/source_scales.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "nibble/numerics/decode.h"

namespace nibble {
namespace {

// Index of the first scale that is no number; the count if there is none.
uint64_t first_bad(ScaleType type, const std::vector<std::byte>& scales, uint64_t width) {
  const uint64_t count = scales.size() / width;
  if (width == 1) {
    std::array<bool, 256> bad{};
    for (size_t code = 0; code < bad.size(); ++code) {
      const auto byte = static_cast<std::byte>(code);
      bad[code] = !std::isfinite(scale_value(type, &byte));
    }
    const auto at =
        std::find_if(scales.begin(), scales.end(), [&bad](std::byte b) { return bad[static_cast<size_t>(b)]; });
    return static_cast<uint64_t>(at - scales.begin());
  }
  std::array<float, 256> values{};
  for (uint64_t begin = 0; begin < count; begin += values.size()) {
    const uint64_t piece = std::min<uint64_t>(values.size(), count - begin);
    scale_values(type, scales.data() + begin * width, piece, values.data());
    for (uint64_t i = 0; i < piece; ++i) {
      if (!std::isfinite(values[i])) return begin + i;
    }
  }
  return count;
}

}  // namespace

std::optional<BadScale> find_bad_scale(const EncodedMatrix& matrix) {
  if (matrix.tensor_scale.level != SecondLevel::kNone && !std::isfinite(matrix.tensor_scale.value))
    return BadScale{0, 0, true, matrix.tensor_scale.value};
  const uint64_t width = scale_type_bytes(matrix.format.scale);
  const uint64_t columns = matrix.format.scale_cols(matrix.cols);
  if (width == 0 || columns == 0) return std::nullopt;
  const uint64_t at = first_bad(matrix.format.scale, matrix.scales, width);
  if (at == matrix.scales.size() / width) return std::nullopt;
  return BadScale{at / columns, at % columns, false,
                  scale_value(matrix.format.scale, matrix.scales.data() + at * width)};
}

}  // namespace nibble
