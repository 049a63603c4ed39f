// How integers of four bits are coded cannot be seen in a header: offset binary and two's complement differ in one bit.
// The histogram of the codes tells, because weights are bell-shaped around zero: read the right way most codes lie at
// the zero point and few at the ends; read with the other encoding it is the reverse; with zero points that are off by
// one (both conventions exist) the mean code lies one beside them. With zero points the codes are seen from those
// (zero_classes.h), which may be wrong themselves.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "nibble/verify/code_stats.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "code-encoding";
constexpr uint64_t kEnough = 4096;  // codes: the shares below are then known to a percent

struct Shape {
  double middle = 0;  // share of codes within 2 of 8, the middle of the range
  double ends = 0;    // share of codes within 2 of 0, where two's complement has its middle
  double mean = 0;    // mean code
  EndShares falling;  // of code 0, of 1 and 15, of 2 and 14, and further from 0, each for one code

  // What a bell around zero becomes with its top bit flipped: the ends crowd, and fall step by step. Weights of two or
  // three values crowd at the ends as well, but with gaps between.
  bool is_flipped_bell() const { return ends > 1.5 * middle && falls_gradually(falling, 0.1); }
};

Shape shape_of(const WeightStats& stats) {
  Shape shape;
  double total = 0;
  for (size_t c = 0; c < 16; ++c) {
    const auto count = static_cast<double>(stats.code_histogram[c]);
    total += count;
    shape.mean += count * static_cast<double>(c);
    if (c >= 6 && c <= 10) shape.middle += count;
    if (c <= 2 || c >= 14) shape.ends += count;
  }
  const auto share = [&](size_t c) { return static_cast<double>(stats.code_histogram[c]) / total; };
  shape.falling = {share(0), (share(1) + share(15)) / 2, (share(2) + share(14)) / 2,
                   (share(4) + share(5) + share(11) + share(12)) / 4};
  shape.middle /= total;
  shape.ends /= total;
  shape.mean /= total;
  return shape;
}

// One step, give or take what the mean of real weights does.
bool is_one_step(double shift) { return std::fabs(shift) > 0.9 && std::fabs(shift) < 1.1; }
// A mean that is not zero, with zero points that are right or off by one.
bool may_hide_a_step(double shift) { return std::fabs(shift) > 0.35; }

// With zero points: mean distance of a block's mean code from its zero point, if all blocks agree on it. Zero points
// that have nothing to do with the codes scatter by several steps.
std::optional<double> common_shift(const Format& format, const WeightStats& stats, uint64_t cols) {
  constexpr double kScatter = 2;
  if (stats.shifted_blocks < 8) return std::nullopt;
  const auto size = static_cast<double>(format.block_cols == 0 ? cols : format.block_cols);
  const auto blocks = static_cast<double>(stats.shifted_blocks);
  const double mean = static_cast<double>(stats.shift_sum) / blocks / size;
  const double square = static_cast<double>(stats.shift_squares) / blocks / size / size;
  if (square - mean * mean > kScatter * kScatter) return std::nullopt;
  return mean;
}

Finding encoding_finding(const VerifyContext& context, size_t w, const Shape& shape) {
  return part_finding(
      context, w, PartKind::kCodes, Severity::kError, kName,
      fmt::format("the codes are two's complement but this layout means offset binary: {:.1f} % lie at the ends (0-2, "
                  "14, 15) and {:.1f} % in the middle (6-10), the reverse of bell-shaped weights. Flip the top bit of "
                  "every code, or declare the layout they were written in",
                  100 * shape.ends, 100 * shape.middle),
      {{"ends_percent", fmt::format("{:.2f}", 100 * shape.ends)},
       {"middle_percent", fmt::format("{:.2f}", 100 * shape.middle)}});
}

// Where a layout stores zero points, both conventions exist; elsewhere it may be that the weights' mean is not zero.
Finding offset_finding(const VerifyContext& context, size_t w, double shift, bool stored_zeros) {
  return part_finding(
      context, w, stored_zeros ? PartKind::kZeros : PartKind::kCodes,
      stored_zeros ? Severity::kError : Severity::kWarning, kName,
      fmt::format("{}: codes lie {:+.2f} steps beside it on average, so that every weight is shifted by a whole step. "
                  "Read the file as the other version of its layout (`checkpoint_format`), or compare with its source "
                  "(--against), which proves what statistics cannot",
                  stored_zeros ? "the zero point is off by one" : "the zero point looks off by one", shift),
      {{"steps", fmt::format("{:.3f}", shift)}});
}

Finding flipped_finding(const VerifyContext& context, size_t w, ZeroReading reading) {
  const ZeroClasses& classes = context.scan->weights[w].zero_classes;
  const double ends = 100 * static_cast<double>(classes.low + classes.high) / static_cast<double>(classes.blocks());
  const char* what = "codes";
  std::string evidence = "they crowd at both ends of the range, away from their zero points";
  if (reading == ZeroReading::kZerosFlipped) {
    what = "zero points";
    evidence =
        fmt::format("{:.1f} % of them lie at the ends of the range (0-3, 12-15) and the codes in its middle", ends);
  } else if (reading == ZeroReading::kBothFlipped) {
    what = "codes and zero points";
    evidence = fmt::format(
        "{:.1f} % of the zero points lie at the ends of the range (0-3, 12-15), and the codes at both", ends);
  }
  return part_finding(
      context, w, reading == ZeroReading::kZerosFlipped ? PartKind::kZeros : PartKind::kCodes, Severity::kError, kName,
      fmt::format(
          "the {0} are two's complement but this layout means offset binary: {1}, as bell-shaped weights do not. "
          "Flip the top bit of all {0}, or declare the layout they were written in",
          what, evidence),
      {{"flipped", what}, {"zero_points_at_ends_percent", fmt::format("{:.2f}", ends)}});
}

// Weights whose codes lie beside their zero points by a part of a step, or several.
struct Shifted {
  uint64_t count = 0;
  size_t first = 0;
  double steps = 0;

  void add(size_t weight, double shift) {
    if (count++ == 0) first = weight, steps = shift;
  }
};

void note_shifted(const VerifyContext& context, const Shifted& shifted, Findings* findings) {
  if (shifted.count == 0) return;
  findings->push_back(part_finding(
      context, shifted.first, PartKind::kZeros, Severity::kNote, kName,
      fmt::format(
          "the codes of {} weights (this is the first) lie {:+.2f} steps beside their zero points on average: "
          "the weights' mean is not zero, and whether the zero points are off by one as well cannot be decided. "
          "`nibble verify --against BASE` tells",
          shifted.count, shifted.steps),
      {{"weights", std::to_string(shifted.count)}, {"steps", fmt::format("{:.3f}", shifted.steps)}}));
}

void check(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  uint64_t undecided = 0;
  Shifted shifted;
  for (size_t w = 0; w < weights.size(); ++w) {
    const WeightStats& stats = context.scan->weights[w];
    const Format& format = weights[w].format;
    if (stats.code_histogram.size() != 16 || stats.elements < kEnough) continue;
    if (code_shape(format) != CodeShape::kOffset || is_proved(context, w)) continue;
    const Shape shape = shape_of(stats);
    if (format.zero == ZeroPoint::kCode) {
      const ZeroReading reading = zero_reading(stats.zero_classes);
      const auto shift = common_shift(format, stats, weights[w].cols());
      if (reading == ZeroReading::kUndecided) {
        ++undecided;
      } else if (reading != ZeroReading::kRight) {
        findings->push_back(flipped_finding(context, w, reading));
      }
      if (shift && is_one_step(*shift)) {
        findings->push_back(offset_finding(context, w, *shift, true));
      } else if (shift && reading == ZeroReading::kRight && may_hide_a_step(*shift)) {
        shifted.add(w, *shift);
      }
    } else if (shape.is_flipped_bell()) {
      findings->push_back(encoding_finding(context, w, shape));
    } else if (shape.middle < 1.2 * shape.ends) {
      ++undecided;
    } else if (is_one_step(shape.mean - 8)) {
      findings->push_back(offset_finding(context, w, shape.mean - 8, false));
    }
  }
  note_shifted(context, shifted, findings);
  if (undecided == 0) return;
  findings->push_back({Severity::kNote,
                       std::string(kName),
                       context.checkpoint->path().string(),
                       "",
                       fmt::format("the codes of {} weights are not bell-shaped: their encoding cannot be proved from "
                                   "their histogram",
                                   undecided),
                       {{"weights", std::to_string(undecided)}}});
}

}  // namespace

extern const Rule kCodeEncoding = {kName, "offset binary or two's complement, zero points off by one", check};

}  // namespace nibble
