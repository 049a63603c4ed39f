#include "nibble/certify/statistics/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "nibble/base/rng.h"

namespace nibble {
namespace {

constexpr uint64_t kKeptValues = uint64_t{1} << 24;  // of all resamples at once
constexpr uint64_t kGathered = 16;                   // statistics: two cache lines of a row

// Between neighbours a <= b. Numpy's two forms: neither steps over its end.
double interpolate(double a, double b, double share) {
  if (a == b || share == 0) return a;
  if (std::isinf(a) || std::isinf(b)) return a * (1 - share) + b * share;
  return share < 0.5 ? a + (b - a) * share : b - (b - a) * (1 - share);
}

// `values` are numbers, at least one.
double quantile(std::vector<double>* values, double share) {
  const double place = share * static_cast<double>(values->size() - 1);
  const auto below = values->begin() + static_cast<ptrdiff_t>(place);
  std::nth_element(values->begin(), below, values->end());
  const auto above = below + 1 == values->end() ? below : std::min_element(below + 1, values->end());
  return interpolate(*below, *above, place - std::floor(place));
}

// Bands of columns of `rows`, which are `width` values each.
void bands_of_columns(const std::vector<double>& rows, uint64_t width, std::span<Band> bands) {
  const uint64_t count = rows.size() / width;
  std::vector<std::vector<double>> columns(kGathered);
  for (uint64_t first = 0; first < width; first += kGathered) {
    const uint64_t gathered = std::min(kGathered, width - first);
    for (std::vector<double>& column : columns) column.resize(count);
    for (uint64_t row = 0; row < count; ++row) {
      for (uint64_t i = 0; i < gathered; ++i) columns[i][row] = rows[row * width + first + i];
    }
    for (uint64_t i = 0; i < gathered; ++i) bands[first + i] = percentile_band(&columns[i]);
  }
}

}  // namespace

std::vector<uint32_t> resample_weights(uint64_t clusters, const BootstrapOptions& options, uint64_t index) {
  const uint64_t stream = random_bits(options.seed, index);
  std::vector<uint32_t> weights(clusters);
  for (uint64_t draw = 0; draw < clusters; ++draw) {
    // Below `clusters` even after rounding: the largest number under 1 falls short of it by more than half a step.
    ++weights[static_cast<uint64_t>(random_uniform(stream, draw) * static_cast<double>(clusters))];
  }
  return weights;
}

Band percentile_band(std::vector<double>* values) {
  std::erase_if(*values, [](double value) { return std::isnan(value); });
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (values->empty()) return {kNone, kNone};
  return {quantile(values, 0.025), quantile(values, 0.975)};
}

std::vector<Band> bootstrap_bands(uint64_t clusters, const BootstrapOptions& options, uint64_t count,
                                  const Statistics& statistics) {
  std::vector<Band> bands(count);
  std::vector<double> values(count);
  if (clusters < 2 || options.resamples == 0) {
    statistics(std::vector<uint32_t>(clusters, 1), values);
    std::transform(values.begin(), values.end(), bands.begin(), [](double value) { return Band{value, value}; });
    return bands;
  }
  const uint64_t block = std::max<uint64_t>(1, kKeptValues / options.resamples);
  for (uint64_t first = 0; first < count; first += block) {
    const uint64_t width = std::min(block, count - first);
    std::vector<double> rows;
    rows.reserve(options.resamples * width);
    for (uint64_t i = 0; i < options.resamples; ++i) {
      statistics(resample_weights(clusters, options, i), values);
      const auto begin = values.begin() + static_cast<ptrdiff_t>(first);
      rows.insert(rows.end(), begin, begin + static_cast<ptrdiff_t>(width));
    }
    bands_of_columns(rows, width, std::span(bands).subspan(first, width));
  }
  return bands;
}

Band bootstrap_band(uint64_t clusters, const BootstrapOptions& options,
                    const std::function<double(std::span<const uint32_t> weights)>& statistic) {
  return bootstrap_bands(
             clusters, options, 1,
             [&](std::span<const uint32_t> weights, std::span<double> values) { values[0] = statistic(weights); })
      .front();
}

uint64_t number_clusters(std::span<uint64_t> clusters) {
  std::unordered_map<uint64_t, uint64_t> numbers;
  for (uint64_t& cluster : clusters) cluster = numbers.try_emplace(cluster, numbers.size()).first->second;
  return numbers.size();
}

}  // namespace nibble
