#include "nibble/quantize/source_scales.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/numerics/decode.h"
#include "nibble/numerics/scale_codec.h"
#include "nibble/numerics/scale_rule.h"

namespace nibble {
namespace {

bool is_integer(Element element) {
  return element != Element::kE2M1 && element != Element::kE4M3 && element != Element::kE5M2;
}

// Of every code, under scale 1 and without a zero point.
std::vector<float> values_of_codes(const Format& format) {
  Format row = format;
  row.block_rows = 1;
  row.block_cols = 0;
  row.zero = ZeroPoint::kNone;
  row.two_level = false;
  const uint64_t bits = format.code_bits();
  EncodedMatrix matrix = EncodedMatrix::make(row, 1, uint64_t{1} << bits);
  for (uint64_t code = 0; code < matrix.cols; ++code)
    matrix.codes.data()[code * bits / 8] |= static_cast<std::byte>(code << (code * bits % 8));
  const uint32_t one = scale_encode(row.scale, 1.0f);
  std::memcpy(matrix.scales.data(), &one, row.scale_bytes());
  std::vector<float> values(matrix.cols);
  decode(matrix, values);
  return values;
}

// Is there a rule that gives the scale the sign of the extreme?
bool has_signs(const Format& format) {
  return std::ranges::any_of(scale_rules(), [&format](const ScaleRule* rule) {
    return rule->needs == BlockStatsNeeded::kExtreme && rule->applies(format);
  });
}

// Does a code of the block stand for the lowest value, which has no opposite? `lowest` is that code.
bool reaches_extreme(const EncodedMatrix& matrix, uint64_t lowest, uint64_t row, uint64_t group) {
  const uint64_t bits = matrix.format.code_bits();
  const std::byte* codes = matrix.codes.data() + row * matrix.format.code_row_bytes(matrix.cols);
  const auto is_extreme = [codes, bits, lowest](uint64_t k) {
    const auto byte = std::to_integer<uint64_t>(codes[k * bits / 8]);
    return (byte >> (k * bits % 8) & ((uint64_t{1} << bits) - 1)) == lowest;
  };
  if (!matrix.column_group.empty()) {
    for (uint64_t k = 0; k < matrix.cols; ++k) {
      if (matrix.column_group[k] == group && is_extreme(k)) return true;
    }
    return false;
  }
  const uint64_t width = matrix.format.block_cols == 0 ? matrix.cols : matrix.format.block_cols;
  for (uint64_t k = group * width; k < std::min(matrix.cols, (group + 1) * width); ++k) {
    if (is_extreme(k)) return true;
  }
  return false;
}

// So small that its type has no four bits left for it: rounding it may have moved the extreme off its code.
bool is_coarse(const EncodedMatrix& matrix, uint64_t index) {
  const uint64_t width = matrix.format.scale_bytes();
  uint32_t bits = 0;
  std::memcpy(&bits, matrix.scales.data() + index * width, width);
  return (bits & ((uint32_t{1} << (8 * width - 1)) - 1)) < 16;
}

// Which values a scale may have.
class Usable {
 public:
  Usable(const EncodedMatrix& matrix, Container container) : matrix_(matrix) {
    const Format& format = matrix.format;
    const bool gguf = container == Container::kGguf;
    zero_ = format.scale_bytes() == 1 || (gguf && is_integer(format.element));
    if (!has_signs(format)) return;
    negative_ = gguf ? Negative::kAlways : Negative::kAtTheExtreme;
    const std::vector<float> values = values_of_codes(format);
    lowest_ = static_cast<uint64_t>(std::ranges::min_element(values) - values.begin());
  }

  bool operator()(float scale, uint64_t index) const {
    if (!std::isfinite(scale)) return false;
    if (scale == 0) return zero_ && (is_integer(matrix_.format.element) || !std::signbit(scale));
    if (scale > 0 || negative_ == Negative::kAlways) return true;
    if (negative_ == Negative::kNever || matrix_.format.block_rows != 1) return false;
    const uint64_t columns = matrix_.format.scale_cols(matrix_.cols);
    return reaches_extreme(matrix_, lowest_, index / columns, index % columns) || is_coarse(matrix_, index);
  }

 private:
  enum class Negative : uint8_t { kNever, kAtTheExtreme, kAlways };

  const EncodedMatrix& matrix_;
  Negative negative_ = Negative::kNever;
  bool zero_ = false;
  uint64_t lowest_ = 0;
};

// Index of the first scale that is not usable; the count if there is none.
uint64_t first_bad(ScaleType type, const std::vector<std::byte>& scales, uint64_t width, const Usable& is_usable) {
  const uint64_t count = scales.size() / width;
  if (width == 1) {
    std::array<bool, 256> bad{};
    for (size_t code = 0; code < bad.size(); ++code) {
      const auto byte = static_cast<std::byte>(code);
      bad[code] = !is_usable(scale_value(type, &byte), 0);
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
      if (!is_usable(values[i], begin + i)) return begin + i;
    }
  }
  return count;
}

Error unusable(const Checkpoint& source, const Weight& weight, PartKind kind, const char* message) {
  const Part* part = weight.part(kind);
  const StoredTensor& tensor = source.tensors()[(part == nullptr ? weight.parts.front() : *part).tensor];
  return std::move(Error(message).file(source.file_of(tensor)).tensor(tensor.name));
}

constexpr const char* kWayOut = "fetch the source again, or make it again from its own source";

}  // namespace

std::optional<BadScale> find_bad_scale(const EncodedMatrix& matrix, Container container) {
  const float second = matrix.tensor_scale.value;
  if (matrix.tensor_scale.level != SecondLevel::kNone && (!std::isfinite(second) || second <= 0))
    return BadScale{0, 0, true, second};
  const uint64_t width = scale_type_bytes(matrix.format.scale);
  const uint64_t columns = matrix.format.scale_cols(matrix.cols);
  if (width == 0 || columns == 0) return std::nullopt;
  const uint64_t at = first_bad(matrix.format.scale, matrix.scales, width, Usable(matrix, container));
  if (at == matrix.scales.size() / width) return std::nullopt;
  return BadScale{at / columns, at % columns, false,
                  scale_value(matrix.format.scale, matrix.scales.data() + at * width)};
}

// Codes that are no numbers are the largest without their sign, so that the largest of many tells whether to look.
std::optional<BadCode> find_bad_code(const EncodedMatrix& matrix) {
  constexpr size_t kPiece = 4096;
  constexpr auto kMagnitude = std::byte{0x7F};
  const Format& format = matrix.format;
  if (format.is_dense() || is_integer(format.element) || format.code_bits() != 8) return std::nullopt;
  const std::vector<float> values = values_of_codes(format);
  const auto is_number = [&values](std::byte code) { return std::isfinite(values[std::to_integer<size_t>(code)]); };
  const std::span<const std::byte> codes(matrix.codes.data(), matrix.codes.size());
  for (size_t begin = 0; begin < codes.size(); begin += kPiece) {
    const auto piece = codes.subspan(begin, std::min(kPiece, codes.size() - begin));
    std::byte largest{0};
    for (const std::byte code : piece) largest = std::max(largest, code & kMagnitude);
    if (is_number(largest)) continue;
    const auto at = static_cast<uint64_t>(std::ranges::find_if_not(piece, is_number) - piece.begin()) + begin;
    return BadCode{at / matrix.cols, at % matrix.cols, values[std::to_integer<size_t>(codes[at])]};
  }
  return std::nullopt;
}

void replace_zero_scales(EncodedMatrix* matrix) {
  const Format& format = matrix->format;
  const uint64_t columns = format.scale_cols(matrix->cols);
  const uint64_t width = format.scale_bytes();
  if (!is_integer(format.element) || format.zero != ZeroPoint::kNone || width <= 1 || columns == 0) return;
  const uint64_t block_bytes = format.code_row_bytes(matrix->cols) / columns;
  const uint32_t one = scale_encode(format.scale, 1.0f);
  std::byte zeros{0};  // as many codes as a byte holds
  const std::vector<float> values = values_of_codes(format);
  const auto zero = static_cast<uint64_t>(std::ranges::find(values, 0.0f) - values.begin());
  for (uint64_t shift = 0; shift < 8; shift += format.code_bits()) zeros |= static_cast<std::byte>(zero << shift);
  for (uint64_t i = 0; i < matrix->rows * columns; ++i) {
    std::byte* scale = matrix->scales.data() + i * width;
    if (scale_value(format.scale, scale) != 0) continue;
    NIBBLE_CHECK(block_bytes * columns == format.code_row_bytes(matrix->cols));
    std::memcpy(scale, &one, width);
    std::byte* codes = matrix->codes.data() + i * block_bytes;
    std::fill(codes, codes + block_bytes, zeros);
  }
}

void refuse_unusable(const Checkpoint& source, const Weight& weight, uint64_t slice, const EncodedMatrix& matrix) {
  if (const auto bad = find_bad_scale(matrix, source.container())) {
    throw std::move(unusable(source, weight, bad->second_level ? PartKind::kSecondScale : PartKind::kScales,
                             std::isfinite(bad->value) ? "a scale of the source is not positive"
                                                       : "a scale of the source is no number")
                        .value("slice", slice)
                        .value("row", bad->row)
                        .value("column", bad->column)
                        .value("value", static_cast<double>(bad->value))
                        .way_out(kWayOut));
  }
  if (const auto bad = find_bad_code(matrix)) {
    throw std::move(unusable(source, weight, PartKind::kCodes,
                             std::isnan(bad->value) ? "a weight is not a number" : "a weight is infinite")
                        .value("slice", slice)
                        .value("row", bad->row)
                        .value("column", bad->column)
                        .value("value", static_cast<double>(bad->value))
                        .way_out(kWayOut));
  }
}

}  // namespace nibble
