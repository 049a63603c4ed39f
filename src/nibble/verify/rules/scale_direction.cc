// Is each scale a multiplier or its reciprocal? The field writes both under similar names. What raises the question is
// magnitude: read the wrong way round a weight is off by the square of the scale, which is thousands or more. A weight
// is looked at when its decoded root mean square lies far outside what the dense matrices of the same checkpoint show,
// and the reciprocal reading lies among them. Experts may be large: where blocks have scales of their own these tell,
// by the codes that they come with (scale_relation.h). Elsewhere magnitude decides alone, if the two readings are a
// thousand apart and the stored one is beyond what weights are anywhere; if not, a note says that it cannot be decided.
//
// Decoded root mean square = that of the codes x logarithmic mean of the scales x second level: within a factor of 1.5
// for weights as they occur, against margins of 30.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "nibble/verify/rule_helpers.h"
#include "nibble/verify/scale_relation.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "scale-direction";

// What weights of this checkpoint look like.
struct Band {
  double low = 0, high = 0;  // root mean squares
  double doubt = 0;          // a weight outside [low / doubt, high * doubt] may be read wrong
  double margin = 0;         // and one outside this cannot be read right
  double tolerance = 8;      // the other reading must be in [low / tolerance, high * tolerance]
  uint64_t matrices = 0;     // 0: no dense matrix, the band is what initialisers and training leave

  bool is_outside(double rms, double by) const { return rms > high * by || rms < low / by; }
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
  if (band.matrices == 0) return {1e-4, 2, 8, 1000, 8, 0};
  band.doubt = band.margin = 30;
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

// A weight that may be read the wrong way round.
struct Suspect {
  size_t weight = 0;
  double as_read = 0, reversed = 0;  // root mean squares
  bool two_level = false;            // the second-level scale is what is in question
  bool beyond = false;               // magnitude says so without help
  std::optional<double> relation;    // of scales and codes; none: it was not looked at
};

std::optional<Suspect> suspect(const VerifyContext& context, size_t w, const Band& band) {
  constexpr double kThousand = 1000;
  const WeightStats& stats = context.scan->weights[w];
  Suspect found;
  found.weight = w;
  found.two_level = !stats.second.empty();
  const double scale = found.two_level ? second_factor(stats) : stats.scales.geometric_mean();
  found.as_read = code_rms(context.model->table.weights()[w].format, stats) * stats.scales.geometric_mean() *
                  (found.two_level ? scale : 1);
  found.reversed = found.as_read / (scale * scale);
  if (found.as_read <= 0 || !band.is_outside(found.as_read, band.doubt)) return std::nullopt;
  if (band.is_outside(found.reversed, band.tolerance)) return std::nullopt;
  const double ratio = scale > 1 ? scale * scale : 1 / (scale * scale);
  found.beyond = band.is_outside(found.as_read, band.margin) && ratio >= kThousand;
  return found;
}

void report(const VerifyContext& context, const Suspect& suspect, const Band& band, Findings* findings) {
  const WeightStats& stats = context.scan->weights[suspect.weight];
  const std::string reference =
      band.matrices == 0 ? "weights in general" : fmt::format("the {} dense matrices here", band.matrices);
  findings->push_back(part_finding(
      context, suspect.weight, suspect.two_level ? PartKind::kSecondScale : PartKind::kScales, Severity::kError, kName,
      fmt::format(
          "the {} is stored as the reciprocal of what its name means: as read the weight has a root mean square "
          "of {:.3g}, read the other way {:.3g}, and {} lie in {:.3g} to {:.3g} (ratio {:.3g}). Store 1/x, or "
          "use the other convention's name",
          suspect.two_level ? "second-level scale" : "scale", suspect.as_read, suspect.reversed, reference, band.low,
          band.high, suspect.as_read / suspect.reversed),
      {{"stored",
        short_number(suspect.two_level ? static_cast<double>(stats.second.front()) : stats.scales.geometric_mean())},
       {"rms_as_read", short_number(suspect.as_read)},
       {"rms_reversed", short_number(suspect.reversed)},
       {"dense_rms_min", short_number(band.low)},
       {"dense_rms_max", short_number(band.high)},
       {"ratio", short_number(suspect.as_read / suspect.reversed)}}));
}

void note_undecided(const VerifyContext& context, const Suspect& first, size_t count, Findings* findings) {
  findings->push_back(part_finding(
      context, first.weight, first.two_level ? PartKind::kSecondScale : PartKind::kScales, Severity::kNote, kName,
      fmt::format("{} weights (this is the first) have a root mean square of {:.3g} as read, and of {:.3g} if their "
                  "scales are reciprocals: which is meant cannot be decided from these files. "
                  "`nibble verify --against BASE` tells",
                  count, first.as_read, first.reversed),
      {{"weights", std::to_string(count)},
       {"rms_as_read", short_number(first.as_read)},
       {"rms_reversed", short_number(first.reversed)}}));
}

std::vector<Suspect> suspects_of(const VerifyContext& context, const Band& band) {
  constexpr size_t kLookedAt = 256;
  std::vector<Suspect> suspects;
  const auto& weights = context.model->table.weights();
  for (size_t w = 0; w < weights.size(); ++w) {
    const WeightStats& stats = context.scan->weights[w];
    if (is_proved(context, w) || weights[w].opaque || weights[w].format.is_dense() || stats.scales.good == 0 ||
        stats.code_histogram.empty())
      continue;
    if (weights[w].format.zero == ZeroPoint::kMin) continue;  // a minimum hides what the codes' size says
    if (const auto found = suspect(context, w, band)) suspects.push_back(*found);
  }
  const size_t step = suspects.size() / kLookedAt + 1;
  for (size_t i = 0; i < suspects.size(); i += step) {
    Suspect& one = suspects[i];
    one.relation = one.two_level ? 0 : scale_relation(context, one.weight);
  }
  return suspects;
}

void check(const VerifyContext& context, Findings* findings) {
  constexpr double kSure = 4;
  const Band band = band_of(context);
  const std::vector<Suspect> suspects = suspects_of(context, band);
  // Those that do not tell, or were not looked at, are as all are together.
  double sum = 0;
  double looked_at = 0;
  for (const Suspect& one : suspects) {
    sum += one.relation.value_or(0);
    looked_at += one.relation.value_or(0) != 0 ? 1 : 0;
  }
  const double pooled = looked_at == 0 ? 0 : sum / std::sqrt(looked_at);
  std::vector<Suspect> undecided;
  for (const Suspect& one : suspects) {
    const double own = one.relation.value_or(0);
    const double relation = one.two_level || std::fabs(own) >= kSure ? own : pooled;
    if (relation <= -kSure) continue;
    if (relation >= kSure || one.beyond) {
      report(context, one, band, findings);
    } else {
      undecided.push_back(one);
    }
  }
  if (!undecided.empty()) note_undecided(context, undecided.front(), undecided.size(), findings);
}

}  // namespace

extern const Rule kScaleDirection = {kName, "a scale stored as the reciprocal of what its name means", check};

}  // namespace nibble
