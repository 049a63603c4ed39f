#include "nibble/quantize/source_scales.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "nibble/base/error.h"
#include "nibble/numerics/decode.h"

namespace nibble {
namespace {

struct Usable {
  bool negative, zero;
  bool operator()(float scale) const {
    return std::isfinite(scale) && (negative || !std::signbit(scale)) && (zero || scale != 0);
  }
};

Usable usable_scales(const Format& format) {
  const bool integers = format.element != Element::kE2M1 && format.element != Element::kE4M3;
  return {.negative = integers, .zero = integers || format.scale_bytes() == 1};
}

// Index of the first scale that is not usable; the count if there is none.
uint64_t first_bad(ScaleType type, const std::vector<std::byte>& scales, uint64_t width, Usable is_usable) {
  const uint64_t count = scales.size() / width;
  if (width == 1) {
    std::array<bool, 256> bad{};
    for (size_t code = 0; code < bad.size(); ++code) {
      const auto byte = static_cast<std::byte>(code);
      bad[code] = !is_usable(scale_value(type, &byte));
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
      if (!is_usable(values[i])) return begin + i;
    }
  }
  return count;
}

}  // namespace

std::optional<BadScale> find_bad_scale(const EncodedMatrix& matrix) {
  const float second = matrix.tensor_scale.value;
  if (matrix.tensor_scale.level != SecondLevel::kNone && (!std::isfinite(second) || second <= 0))
    return BadScale{0, 0, true, second};
  const uint64_t width = scale_type_bytes(matrix.format.scale);
  const uint64_t columns = matrix.format.scale_cols(matrix.cols);
  if (width == 0 || columns == 0) return std::nullopt;
  const uint64_t at = first_bad(matrix.format.scale, matrix.scales, width, usable_scales(matrix.format));
  if (at == matrix.scales.size() / width) return std::nullopt;
  return BadScale{at / columns, at % columns, false,
                  scale_value(matrix.format.scale, matrix.scales.data() + at * width)};
}

void refuse_bad_scale(const Checkpoint& source, const Weight& weight, uint64_t slice, const EncodedMatrix& matrix) {
  const auto bad = find_bad_scale(matrix);
  if (!bad) return;
  const PartKind kind = bad->second_level ? PartKind::kSecondScale : PartKind::kScales;
  const auto part =
      std::find_if(weight.parts.begin(), weight.parts.end(), [kind](const Part& p) { return p.kind == kind; });
  const StoredTensor& tensor = source.tensors()[(part == weight.parts.end() ? weight.parts.front() : *part).tensor];
  throw Error(std::isfinite(bad->value) ? "a scale of the source is not positive"
                                        : "a scale of the source is no number")
      .file(source.file_of(tensor))
      .tensor(tensor.name)
      .value("slice", slice)
      .value("row", bad->row)
      .value("column", bad->column)
      .value("value", static_cast<double>(bad->value))
      .way_out("fetch the source again, or make it again from its own source");
}

}  // namespace nibble
