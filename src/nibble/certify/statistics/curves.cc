#include "nibble/certify/statistics/curves.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

#include "nibble/base/check.h"

namespace nibble {
namespace {

using Weights = std::span<const uint32_t>;

// The clusters of the ends in their order, numbered from 0.
struct NumberedClusters {
  explicit NumberedClusters(std::span<const ChainEnd> ends) {
    of_end.reserve(ends.size());
    for (const ChainEnd& end : ends) {
      NIBBLE_CHECK(end.time >= 1);
      of_end.push_back(end.cluster);
    }
    count = number_clusters(of_end);
  }
  std::vector<uint64_t> of_end;
  uint64_t count = 0;
};

// What is known at a time, counted since the last censoring: until the next one both estimators are plain shares of
// those at risk then, so products need not be multiplied out and nothing is rounded twice.
struct Run {
  double left = 0, running = 1;  // diverged, and neither diverged nor ended, when it began
  uint64_t at_risk = 0;          // when it began
  uint64_t diverged = 0, ended = 0;

  double share(uint64_t chains) const { return running * static_cast<double>(chains) / static_cast<double>(at_risk); }
  double incidence() const { return at_risk == 0 ? left : left + share(diverged); }
  double survival() const { return at_risk == 0 ? running : share(at_risk - diverged - ended); }
  void censor(uint64_t chains) {
    if (chains != 0) *this = {incidence(), survival(), at_risk - diverged - ended - chains};
  }
};

enum class CurveKind { kIncidence, kSurvival };

// The ends in the order of their times, once for all resamples.
class Sweep {
 public:
  Sweep(std::span<const ChainEnd> ends, const NumberedClusters& clusters, CurveKind kind) : kind_(kind) {
    std::vector<size_t> order(ends.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::tuple(ends[a].time, ends[a].kind, a) < std::tuple(ends[b].time, ends[b].kind, b);
    });
    for (const size_t i : order) {
      const ChainEnd& end = ends[i];
      if (times_.empty() || times_.back().time != end.time)
        times_.push_back({.time = end.time, .begin = clusters_.size()});
      clusters_.push_back(clusters.of_end[i]);
      Time& time = times_.back();
      time.end = clusters_.size();
      if (end.kind == ChainEndKind::kDiverged) ++time.diverged;
      // Where answers are thought not to end, one that did is censored.
      if (end.kind == ChainEndKind::kEnded && kind == CurveKind::kIncidence) ++time.ended;
    }
    for (const Time& time : times_) {
      if (is_point(time)) points_.push_back(time.time);
    }
  }

  const std::vector<uint64_t>& points() const { return points_; }

  // One value a point.
  void run(Weights weights, std::span<double> values) const {
    Run run;
    run.at_risk = sum(weights, 0, clusters_.size());
    size_t point = 0;
    for (const Time& time : times_) {
      const size_t diverged_to = time.begin + time.diverged, ended_to = diverged_to + time.ended;
      run.diverged += sum(weights, time.begin, diverged_to);
      run.ended += sum(weights, diverged_to, ended_to);
      if (is_point(time)) values[point++] = kind_ == CurveKind::kIncidence ? run.incidence() : run.survival();
      run.censor(sum(weights, ended_to, time.end));
    }
  }

 private:
  struct Time {
    uint64_t time = 0;
    size_t begin = 0;  // in clusters_: first those that diverged, then those that ended, then the censored ones …
    size_t diverged = 0, ended = 0;
    size_t end = 0;  // … up to here
  };

  bool is_point(const Time& time) const { return time.diverged != 0 || &time == &times_.back(); }
  uint64_t sum(Weights weights, size_t begin, size_t end) const {
    uint64_t total = 0;
    for (size_t i = begin; i < end; ++i) total += weights[clusters_[i]];
    return total;
  }

  CurveKind kind_;
  std::vector<Time> times_;
  std::vector<uint64_t> clusters_;  // of the ends
  std::vector<uint64_t> points_;    // their times
};

Curve make_curve(std::span<const ChainEnd> ends, const BootstrapOptions& bootstrap, CurveKind kind) {
  const NumberedClusters clusters(ends);
  const Sweep sweep(ends, clusters, kind);
  const size_t count = sweep.points().size();
  std::vector<double> values(count);
  sweep.run(std::vector<uint32_t>(clusters.count, 1), values);
  const std::vector<Band> bands = bootstrap_bands(
      clusters.count, bootstrap, count, [&](Weights weights, std::span<double> out) { sweep.run(weights, out); });
  Curve curve;
  for (size_t i = 0; i < count; ++i) curve.push_back({sweep.points()[i], values[i], bands[i].low, bands[i].high});
  return curve;
}

// Bin b holds the positions of b bits.
size_t bin_of(uint64_t position) { return static_cast<size_t>(std::bit_width(position)); }

// Choices and divergences of each bin. An end is looked at in the last bin that it reaches; the bins before it have it
// whole.
void count_bins(std::span<const ChainEnd> ends, const NumberedClusters& clusters, Weights weights,
                std::vector<HazardBin>* bins) {
  std::vector<uint64_t> last(bins->size());
  for (HazardBin& bin : *bins) bin.choices = bin.divergences = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const size_t b = bin_of(ends[i].time - 1);
    const uint64_t weight = weights[clusters.of_end[i]];
    (*bins)[b].choices += weight * (ends[i].time - (*bins)[b].from);
    if (ends[i].kind == ChainEndKind::kDiverged) (*bins)[b].divergences += weight;
    last[b] += weight;
  }
  uint64_t beyond = 0;
  for (size_t b = bins->size(); b-- > 0;) {
    HazardBin& bin = (*bins)[b];
    bin.choices += beyond * (bin.to - bin.from);
    beyond += last[b];
    bin.value = bin.choices == 0 ? std::numeric_limits<double>::quiet_NaN()
                                 : static_cast<double>(bin.divergences) / static_cast<double>(bin.choices);
  }
}

}  // namespace

Curve divergence_incidence(std::span<const ChainEnd> ends, const BootstrapOptions& bootstrap) {
  return make_curve(ends, bootstrap, CurveKind::kIncidence);
}

Curve agreement_survival(std::span<const ChainEnd> ends, const BootstrapOptions& bootstrap) {
  return make_curve(ends, bootstrap, CurveKind::kSurvival);
}

std::vector<HazardBin> divergence_hazard(std::span<const ChainEnd> ends, const BootstrapOptions& bootstrap) {
  if (ends.empty()) return {};
  const NumberedClusters clusters(ends);
  const uint64_t last = std::max_element(ends.begin(), ends.end(), [](const ChainEnd& a, const ChainEnd& b) {
                          return a.time < b.time;
                        })->time;
  std::vector<HazardBin> bins;
  for (uint64_t from = 0; from < last; from = bins.back().to) {
    bins.push_back({.from = from, .to = std::min(last, from == 0 ? 1 : 2 * from)});
  }
  std::vector<HazardBin> drawn = bins;
  const std::vector<Band> bands =
      bootstrap_bands(clusters.count, bootstrap, bins.size(), [&](Weights weights, std::span<double> values) {
        count_bins(ends, clusters, weights, &drawn);
        std::transform(drawn.begin(), drawn.end(), values.begin(), [](const HazardBin& bin) { return bin.value; });
      });
  count_bins(ends, clusters, std::vector<uint32_t>(clusters.count, 1), &bins);
  for (size_t b = 0; b < bins.size(); ++b) std::tie(bins[b].low, bins[b].high) = std::tie(bands[b].low, bands[b].high);
  return bins;
}

}  // namespace nibble
