#include "nibble/verify/scale_stats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "nibble/numerics/decode.h"
#include "nibble/verify/code_stats.h"

namespace nibble {
namespace {

// The bit pattern of a float is its logarithm to base 2 up to the curve of the mantissa: no call of log2 per scale, and
// sums of integers do not depend on order.
int64_t log2_fixed(float value) { return static_cast<int64_t>(std::bit_cast<uint32_t>(value)) - (int64_t{127} << 23); }

void add_good(float value, uint64_t times, ScaleStats* stats) {
  const double wide = static_cast<double>(value);
  stats->min = stats->good == 0 ? wide : std::min(stats->min, wide);
  stats->max = std::max(stats->max, wide);
  stats->good += times;
  stats->log2_fixed += log2_fixed(value) * static_cast<int64_t>(times);
  const auto bits = std::bit_cast<uint32_t>(value);
  const bool subnormal = bits < 0x00800000;
  if (subnormal ? std::has_single_bit(bits) : (bits & 0x007fffff) == 0) stats->powers_of_two += times;
}

// Returns false for what `first_bad` is about.
bool add_value(float value, uint64_t times, ScaleStats* stats) {
  stats->count += times;
  if (std::isnan(value)) {
    stats->nans += times;
  } else if (std::isinf(value)) {
    stats->infinities += times;
  } else if (value == 0) {
    stats->zeros += times;
    return true;
  } else if (value < 0) {
    stats->negatives += times;
  } else {
    add_good(value, times, stats);
    return true;
  }
  return false;
}

// One-byte types: count first, look at each of the 256 values once.
void add_byte_scales(std::span<const std::byte> stored, ScaleType type, uint64_t first_index, ScaleStats* stats) {
  ByteCounts counts{};
  count_bytes(stored, &counts);
  std::array<bool, 256> bad{};
  bool any_bad = false;
  for (size_t b = 0; b < 256; ++b) {
    if (counts[b] == 0) continue;
    const auto code = static_cast<std::byte>(b);
    bad[b] = !add_value(scale_value(type, &code), counts[b], stats);
    any_bad = any_bad || bad[b];
  }
  if (!any_bad) return;
  const auto first =
      std::find_if(stored.begin(), stored.end(), [&](std::byte b) { return bad[static_cast<size_t>(b)]; });
  const uint64_t index = first_index + static_cast<uint64_t>(first - stored.begin());
  if (!stats->first_bad || index < *stats->first_bad) stats->first_bad = index;
}

// Pieces of scales that are all positive, normal and finite: sums over their patterns, whose order is that of their
// values. False if some are not, and then nothing has been added.
bool add_ordinary(std::span<const float> values, ScaleStats* stats) {
  uint32_t least = 0x7f7fffff, most = 0, powers = 0;
  int64_t sum = 0;
  for (const float value : values) {
    const auto bits = std::bit_cast<uint32_t>(value);
    least = std::min(least, bits);
    most = std::max(most, bits);
    powers += (bits & 0x007fffff) == 0 ? 1 : 0;
    sum += bits;
  }
  if (least < 0x00800000 || most > 0x7f7fffff) return false;
  const auto count = static_cast<int64_t>(values.size());
  ScaleStats piece;
  piece.count = piece.good = values.size();
  piece.powers_of_two = powers;
  piece.min = static_cast<double>(std::bit_cast<float>(least));
  piece.max = static_cast<double>(std::bit_cast<float>(most));
  piece.log2_fixed = sum - count * (int64_t{127} << 23);
  stats->merge(piece);
  return true;
}

// A call for each piece, not for each scale.
void add_wide_scales(std::span<const std::byte> stored, ScaleType type, uint64_t first_index, ScaleStats* stats) {
  const uint64_t size = scale_type_bytes(type);
  const uint64_t count = stored.size() / size;
  std::array<float, 256> values{};
  for (uint64_t begin = 0; begin < count; begin += values.size()) {
    const uint64_t piece = std::min<uint64_t>(values.size(), count - begin);
    scale_values(type, stored.data() + begin * size, piece, values.data());
    if (add_ordinary(std::span(values).first(piece), stats)) continue;
    for (uint64_t i = 0; i < piece; ++i) {
      if (add_value(values[i], 1, stats)) continue;
      const uint64_t index = first_index + begin + i;
      if (!stats->first_bad || index < *stats->first_bad) stats->first_bad = index;
    }
  }
}

}  // namespace

double ScaleStats::geometric_mean() const {
  if (good == 0) return 1;
  return std::exp2(static_cast<double>(log2_fixed) / static_cast<double>(good) * 0x1p-23);
}

void ScaleStats::merge(const ScaleStats& other) {
  if (other.good != 0) {
    min = good == 0 ? other.min : std::min(min, other.min);
    max = std::max(max, other.max);
  }
  count += other.count;
  zeros += other.zeros;
  negatives += other.negatives;
  nans += other.nans;
  infinities += other.infinities;
  powers_of_two += other.powers_of_two;
  good += other.good;
  log2_fixed += other.log2_fixed;
  if (other.first_bad && (!first_bad || *other.first_bad < *first_bad)) first_bad = other.first_bad;
}

void add_scales(std::span<const std::byte> stored, ScaleType type, uint64_t first_index, ScaleStats* stats) {
  switch (scale_type_bytes(type)) {
    case 0: return;
    case 1: return add_byte_scales(stored, type, first_index, stats);
    default: return add_wide_scales(stored, type, first_index, stats);
  }
}

std::optional<ScaleType> stored_scale_type(Dtype dtype, const Format& format) {
  switch (dtype) {
    case Dtype::kF32: return ScaleType::kF32;
    case Dtype::kBF16: return ScaleType::kBF16;
    case Dtype::kF16: return ScaleType::kF16;
    case Dtype::kF8E8M0: return ScaleType::kE8M0;
    case Dtype::kF8E4M3: return ScaleType::kE4M3;
    // Older files carry one-byte scales as plain bytes: the format says which kind they are.
    case Dtype::kU8: return scale_type_bytes(format.scale) == 1 ? std::optional(format.scale) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace nibble
