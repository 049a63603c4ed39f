#include "nibble/verify/extreme_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "nibble/numerics/decode.h"
#include "nibble/numerics/effective_scale.h"
#include "nibble/verify/code_stats.h"
#include "nibble/verify/weight_stats.h"

namespace nibble {
namespace {

constexpr double kLeast = 0x1p-149;               // float32
constexpr double kRoundsToInfinity = 0x1.FFp127;  // in BF16

size_t step_of(double value) {
  const double octave = std::log2(std::max(value, kLeast)) - std::log2(kLeast);
  return std::min(static_cast<size_t>(octave) / OctaveCounts::kOctaves, OctaveCounts::kSteps - 1);
}

// The largest magnitude of a scale; all scales of the rows at once, since they are few beside the codes.
double largest_scale(const EncodedMatrix& m) {
  const uint64_t size = m.format.scale_bytes();
  std::array<float, 256> values{};
  float most = 0;
  for (uint64_t begin = 0; size != 0 && begin < m.scales.size() / size; begin += values.size()) {
    const uint64_t count = std::min<uint64_t>(values.size(), m.scales.size() / size - begin);
    scale_values(m.format.scale, m.scales.data() + begin * size, count, values.data());
    for (uint64_t i = 0; i < count; ++i) most = std::max(most, std::fabs(values[i]));
  }
  return static_cast<double>(most);
}

// No element can be larger.
double bound_of(const EncodedMatrix& m) {
  double least = 0, most = 0;
  for (const float value : code_values(m.format)) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, static_cast<double>(value));
    most = std::max(most, static_cast<double>(value));
  }
  const double code = m.format.zero == ZeroPoint::kCode ? most - least : std::max(most, -least);
  const double second = static_cast<double>(m.tensor_scale.value);
  const double scale = m.tensor_scale.level == SecondLevel::kMultiply ? largest_scale(m) * std::fabs(second)
                       : m.tensor_scale.level == SecondLevel::kDivide ? largest_scale(m) / std::fabs(second)
                                                                      : largest_scale(m);
  double min = 0;
  for (const float value : m.mins) min = std::max(min, static_cast<double>(std::fabs(value)));
  return scale * std::max(code, 1.0) + min;
}

}  // namespace

void OctaveCounts::add_step(size_t step, uint64_t times) {
  counts_[step] =
      static_cast<uint32_t>(std::min<uint64_t>(counts_[step] + times, std::numeric_limits<uint32_t>::max()));
}

void OctaveCounts::add(double value, uint64_t times) {
  if (value > 0 && std::isfinite(value)) add_step(step_of(value), times);
}

void OctaveCounts::add_range(double low, double high, uint64_t times) {
  if (!(low > 0) || !std::isfinite(high)) return;
  for (size_t step = step_of(low); step < step_of(high); ++step) add_step(step, 1);
  add_step(step_of(high), times);
}

void OctaveCounts::merge(const OctaveCounts& other) {
  for (size_t step = 0; step < kSteps; ++step) add_step(step, other.counts_[step]);
}

OctaveCounts::Apart OctaveCounts::apart(bool above) const {
  const auto count_at = [&](size_t i) { return counts_[above ? kSteps - 1 - i : i]; };
  Apart apart;
  size_t empty = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    if (count_at(i) == 0) {
      ++empty;
      continue;
    }
    if (apart.octaves != 0) {
      apart.others += count_at(i);
    } else if (apart.count != 0 && empty >= kGap) {
      apart.octaves = static_cast<int>(empty) * kOctaves;
      apart.others += count_at(i);
    } else {
      apart.count += count_at(i);
    }
    empty = 0;
  }
  return apart.octaves == 0 ? Apart() : apart;
}

void ExtremeStats::merge(const ExtremeStats& other) {
  overflows += other.overflows;
  if (other.first_overflow && (!first_overflow || *other.first_overflow < *first_overflow))
    first_overflow = other.first_overflow;
  blocks.merge(other.blocks);
}

void add_overflows(const EncodedMatrix& rows, uint64_t first, ExtremeStats* stats) {
  // Written so that a bound that is no number does not pass either.
  if (bound_of(rows) < kRoundsToInfinity) return;
  std::vector<float> values(rows.cols);
  EncodedView row = rows.view();
  const uint64_t tall = rows.format.block_rows;
  for (uint64_t r = 0; r < rows.rows; ++r) {
    const uint64_t scale_row = tall == 0 ? 0 : (rows.row_phase + r) / tall;
    const uint64_t scale = scale_row * rows.format.scale_cols(rows.cols);
    row.rows = 1;
    row.row_phase = 0;
    row.codes = rows.codes.data() + r * rows.format.code_row_bytes(rows.cols);
    row.scales = rows.scales.data() + scale * rows.format.scale_bytes();
    if (!rows.zeros.empty()) row.zeros = rows.zeros.data() + scale;
    if (!rows.mins.empty()) row.mins = rows.mins.data() + scale;
    decode(row, values.data(), rows.cols);
    for (uint64_t c = 0; c < rows.cols; ++c) {
      if (std::fabs(static_cast<double>(values[c])) < kRoundsToInfinity) continue;
      ++stats->overflows;
      if (!stats->first_overflow) stats->first_overflow = first + r * rows.cols + c;
    }
  }
}

bool add_blocks(const EncodedMatrix& rows, const ScaleStats& scales, ExtremeStats* stats) {
  constexpr double kFar = 0x1p24;
  if (scales.good == 0 || scales.good != scales.count || scales.max >= scales.min * kFar) return false;
  const double second = static_cast<double>(effective_scale(1, rows.tensor_scale.level, rows.tensor_scale.value));
  stats->blocks.add_range(scales.min * second, scales.max * second, scales.count);
  return true;
}

void add_live_blocks(const EncodedMatrix& rows, uint64_t scale_row, std::span<const uint8_t> maxima,
                     ExtremeStats* stats) {
  const uint64_t size = rows.format.scale_bytes();
  std::vector<float> scales(maxima.size());
  scale_values(rows.format.scale, rows.scales.data() + scale_row * maxima.size() * size, maxima.size(), scales.data());
  effective_scales(scales.data(), scales.size(), rows.tensor_scale, scales.data());
  for (size_t b = 0; b < maxima.size(); ++b) {
    if (maxima[b] != 0) stats->blocks.add(static_cast<double>(std::fabs(scales[b])));
  }
}

}  // namespace nibble
