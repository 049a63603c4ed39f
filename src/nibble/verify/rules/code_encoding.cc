// How integers of four bits are coded cannot be seen in a header: offset binary and two's complement differ in one bit.
// The histogram of the codes tells, because weights are bell-shaped around zero: read the right way most codes lie at
// the zero point and few at the ends; read with the other encoding it is the reverse; with zero points that are off by
// one (both conventions exist) the mean code lies one beside them.
#include <fmt/format.h>

#include <cmath>

#include "nibble/verify/code_stats.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "code-encoding";
constexpr uint64_t kEnough = 4096;  // codes: the shares below are then known to a percent

struct Shape {
  double middle = 0;  // share of codes within 2 of the zero point 8
  double ends = 0;    // share of codes within 2 of the code 0 that two's complement has for zero
  double mean = 0;    // mean code
  double zero = 8;    // mean zero point
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
  shape.middle /= total;
  shape.ends /= total;
  shape.mean /= total;
  if (stats.zero_points != 0)
    shape.zero = static_cast<double>(stats.zero_point_sum) / static_cast<double>(stats.zero_points);
  return shape;
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

Finding offset_finding(const VerifyContext& context, size_t w, const Shape& shape, bool has_zeros) {
  return part_finding(
      context, w, has_zeros ? PartKind::kZeros : PartKind::kCodes, Severity::kError, kName,
      fmt::format(
          "the zero point is off by one: the mean code is {:.2f}, the zero point {:.2f}, so that every weight is "
          "shifted by a whole step. Read the file as the other version of its layout (`checkpoint_format`)",
          shape.mean, shape.zero),
      {{"mean_code", fmt::format("{:.3f}", shape.mean)}, {"zero_point", fmt::format("{:.3f}", shape.zero)}});
}

void check(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  uint64_t undecided = 0;
  for (size_t w = 0; w < weights.size(); ++w) {
    const WeightStats& stats = context.scan->weights[w];
    const Format& format = weights[w].format;
    if (stats.code_histogram.size() != 16 || stats.elements < kEnough) continue;
    if (code_shape(format) != CodeShape::kOffset) continue;
    const Shape shape = shape_of(stats);
    const double shift = std::fabs(shape.mean - shape.zero);
    const bool fixed_zero = format.zero == ZeroPoint::kNone;
    if (fixed_zero && shape.ends > 1.5 * shape.middle) {
      findings->push_back(encoding_finding(context, w, shape));
    } else if (shift > 0.75 && shift < 1.25) {
      findings->push_back(offset_finding(context, w, shape, !fixed_zero));
    } else if (fixed_zero && shape.middle < 1.2 * shape.ends) {
      ++undecided;
    }
  }
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
