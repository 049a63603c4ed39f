#include "nibble/verify/zero_classes.h"

#include <algorithm>

namespace nibble {
namespace {

constexpr uint64_t kFewBlocks = 64;
constexpr double kClear = 1.5;       // how many times more codes lie where they should, or should not
constexpr double kBothSides = 0.15;  // of the blocks, at the end where fewer zero points lie
constexpr double kNearEnd = 0.1;     // of the blocks at the ends, to tell them from blocks of one sign
constexpr double kGradual = 0.25;    // of what lies one step nearer to the end

struct Spread {
  double middle = 0;           // share of codes 6 to 9
  double bottom = 0, top = 0;  // of 0 and 1, of 14 and 15
  EndShares ends;              // of 0 and 15, of 1 and 14, of 2 and 13, of two such pairs
  bool falls_from_the_ends() const { return falls_gradually(ends, kGradual); }
  bool bell() const { return middle > kClear * (bottom + top); }
  // One end alone is what weights of one sign look like.
  bool two_ends() const { return bottom + top > kClear * middle && bottom > middle / 2 && top > middle / 2; }
};

Spread spread_of(const std::array<uint64_t, 16>& codes) {
  Spread spread;
  double total = 0;
  for (size_t c = 0; c < codes.size(); ++c) {
    const auto count = static_cast<double>(codes[c]);
    total += count;
    if (c >= 6 && c <= 9) spread.middle += count;
    if (c <= 1) spread.bottom += count;
    if (c >= 14) spread.top += count;
    const size_t steps = std::min(c, 15 - c);
    if (steps == 0) spread.ends.last += count;
    if (steps == 1) spread.ends.second += count;
    if (steps == 2) spread.ends.third += count;
    if (steps == 4 || steps == 5) spread.ends.far += count / 2;
  }
  for (double* share : {&spread.middle, &spread.bottom, &spread.top, &spread.ends.last, &spread.ends.second,
                        &spread.ends.third, &spread.ends.far})
    *share /= total == 0 ? 1 : total;
  return spread;
}

}  // namespace

bool falls_gradually(const EndShares& shares, double gradual) {
  // Bells under scales of 32 to 128 columns: 0.15 to 0.52, cut off at one and a half deviations 0.64; spread evenly: 1.
  constexpr double kFar = 0.65;
  const auto& [last, second, third, far] = shares;
  return last >= 0.9 * second && second >= 0.9 * third && second >= gradual * last && third >= gradual * second &&
         far <= kFar * (last + second) / 2;
}

void ZeroClasses::merge(const ZeroClasses& other) {
  inside += other.inside;
  low += other.low;
  high += other.high;
  near_end += other.near_end;
  for (size_t c = 0; c < inside_codes.size(); ++c) {
    inside_codes[c] += other.inside_codes[c];
    end_codes[c] += other.end_codes[c];
  }
}

void add_zero_classes(const EncodedMatrix& matrix, ZeroClasses* classes) {
  const uint64_t block = matrix.format.block_cols == 0 ? matrix.cols : matrix.format.block_cols;
  const uint64_t scale_cols = matrix.format.scale_cols(matrix.cols);
  if (element_bits(matrix.format.element) != 4 || matrix.format.block_rows != 1 || block % 2 != 0 ||
      matrix.zeros.size() != matrix.rows * scale_cols)
    return;
  const uint64_t row_bytes = matrix.format.code_row_bytes(matrix.cols);
  std::array<std::array<uint64_t, 256>, 3> bytes{};  // by class: inside, low, high
  for (uint64_t r = 0; r < matrix.rows; ++r) {
    for (uint64_t b = 0; (b + 1) * block <= matrix.cols; ++b) {
      const uint8_t zero = matrix.zeros[r * scale_cols + b];
      const size_t at = zero < 4 ? 1 : zero > 11 ? 2 : 0;
      ++(at == 0 ? classes->inside : at == 1 ? classes->low : classes->high);
      classes->near_end += at != 0 && zero != 0 && zero != 15 ? 1 : 0;
      const std::byte* codes = matrix.codes.data() + r * row_bytes + b * block / 2;
      for (uint64_t i = 0; i < block / 2; ++i) ++bytes[at][static_cast<size_t>(codes[i])];
    }
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    for (const size_t code : {byte & 15, byte >> 4}) {
      classes->inside_codes[code] += bytes[0][byte];
      classes->end_codes[code] += bytes[1][byte];
      classes->end_codes[15 - code] += bytes[2][byte];
    }
  }
}

ZeroReading zero_reading(const ZeroClasses& classes) {
  if (classes.blocks() < kFewBlocks) return ZeroReading::kUndecided;
  const auto blocks = static_cast<double>(classes.blocks());
  const auto ends = static_cast<double>(classes.low + classes.high);
  const Spread inside = spread_of(classes.inside_codes);
  if (2 * ends <= blocks) {
    if (inside.two_ends() && inside.falls_from_the_ends()) return ZeroReading::kCodesFlipped;
    return inside.bell() ? ZeroReading::kRight : ZeroReading::kUndecided;
  }
  const auto fewer = static_cast<double>(classes.low < classes.high ? classes.low : classes.high);
  const bool both_signs = fewer >= kBothSides * blocks && static_cast<double>(classes.near_end) >= kNearEnd * ends;
  if (!both_signs) return ZeroReading::kUndecided;
  const Spread end = spread_of(classes.end_codes);
  if (end.two_ends()) return end.falls_from_the_ends() ? ZeroReading::kBothFlipped : ZeroReading::kUndecided;
  return end.bell() ? ZeroReading::kZerosFlipped : ZeroReading::kUndecided;
}

}  // namespace nibble
