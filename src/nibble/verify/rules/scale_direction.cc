// Is each scale a multiplier or its reciprocal? The field writes both under similar names. The proof is magnitude: read
// the wrong way round a weight is off by the square of the scale, which is thousands or more. A weight is reported when
// its decoded root mean square lies far outside what the dense matrices of the same checkpoint show, and the reciprocal
// reading lies among them.
//
// Decoded root mean square = that of the codes x logarithmic mean of the scales x second level: within a factor of 1.5
// for weights as they occur, against margins of 30.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "scale-direction";

// What weights of this checkpoint look like.
struct Band {
  double low = 0, high = 0;  // root mean squares
  double margin = 0;         // a weight outside [low / margin, high * margin] cannot be read right
  double tolerance = 8;      // the other reading must be in [low / tolerance, high * tolerance]
  uint64_t matrices = 0;     // 0: no dense matrix, the band is what initialisers and training leave
};

Band band_of(const VerifyContext& context) {
  constexpr uint64_t kSmallest = 256;
  Band band;
  const auto& weights = context.model->table.weights();
  for (size_t w = 0; w < weights.size(); ++w) {
    const WeightStats& stats = context.scan->weights[w];
    const Role role = context.model->params[w].role;
    if (weights[w].opaque || !weights[w].format.is_dense() || weights[w].shape.size() < 2) continue;
    if (role == Role::kNorm || role == Role::kBias || stats.elements < kSmallest) continue;
    const double rms = stats.dense_rms();
    if (rms <= 0) continue;
    band.low = band.matrices == 0 ? rms : std::min(band.low, rms);
    band.high = std::max(band.high, rms);
    ++band.matrices;
  }
  if (band.matrices == 0) return {1e-4, 2, 1000, 8, 0};
  band.margin = 30;
  return band;
}

double second_factor(const WeightStats& stats) {
  double logs = 0;
  double count = 0;
  for (const float value : stats.second) {
    if (!std::isfinite(value) || value <= 0) continue;
    logs += std::log(static_cast<double>(value));
    ++count;
  }
  const double mean = count == 0 ? 1 : std::exp(logs / count);
  return stats.level == SecondLevel::kDivide ? 1 / mean : mean;
}

void check_weight(const VerifyContext& context, size_t w, const Band& band, Findings* findings) {
  const Format& format = context.model->table.weights()[w].format;
  const WeightStats& stats = context.scan->weights[w];
  const bool two_level = !stats.second.empty();
  const double suspect = two_level ? second_factor(stats) : stats.scales.geometric_mean();
  const double as_read = code_rms(format, stats) * stats.scales.geometric_mean() * (two_level ? suspect : 1);
  const double reversed = as_read / (suspect * suspect);
  const bool outside = as_read > band.high * band.margin || as_read < band.low / band.margin;
  const bool other_fits = reversed < band.high * band.tolerance && reversed > band.low / band.tolerance;
  if (as_read <= 0 || !outside || !other_fits) return;
  const std::string reference =
      band.matrices == 0 ? "weights in general" : fmt::format("the {} dense matrices here", band.matrices);
  findings->push_back(part_finding(
      context, w, two_level ? PartKind::kSecondScale : PartKind::kScales, Severity::kError, kName,
      fmt::format(
          "the {} is stored as the reciprocal of what its name means: as read the weight has a root mean square "
          "of {:.3g}, read the other way {:.3g}, and {} lie in {:.3g} to {:.3g} (ratio {:.3g}). Store 1/x, or "
          "use the other convention's name",
          two_level ? "second-level scale" : "scale", as_read, reversed, reference, band.low, band.high,
          as_read / reversed),
      {{"stored", short_number(two_level ? static_cast<double>(stats.second.front()) : stats.scales.geometric_mean())},
       {"rms_as_read", short_number(as_read)},
       {"rms_reversed", short_number(reversed)},
       {"dense_rms_min", short_number(band.low)},
       {"dense_rms_max", short_number(band.high)},
       {"ratio", short_number(as_read / reversed)}}));
}

void check(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  const Band band = band_of(context);
  for (size_t w = 0; w < weights.size(); ++w) {
    const WeightStats& stats = context.scan->weights[w];
    if (is_proved(context, w) || weights[w].opaque || weights[w].format.is_dense() || stats.scales.good == 0 ||
        stats.code_histogram.empty())
      continue;
    if (weights[w].format.zero == ZeroPoint::kMin) continue;  // a minimum hides what the codes' size says
    check_weight(context, w, band, findings);
  }
}

}  // namespace

extern const Rule kScaleDirection = {kName, "a scale stored as the reciprocal of what its name means", check};

}  // namespace nibble
