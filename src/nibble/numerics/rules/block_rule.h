// The functions of a rule, made from one formula:
//
//   struct Formula {
//     static constexpr BlockStatsNeeded kNeeds = …;
//     static constexpr int8_t kLow = …, kHigh = …;            // clamps of integer elements
//     Formula(const Format&, const TensorScale&);             // what is the same for all blocks
//     template <ScaleType kType> uint32_t stored(const BlockStats& stats) const;
//     uint8_t zero(const BlockStats& stats, float value) const;
//   };
//
// AmaxFormula supplies the defaults of rules that read the largest magnitude alone. The loop over blocks has no
// branches that depend on the data, so that the compiler can vectorise it.
#pragma once

#include <cstdint>

#include "nibble/numerics/scale_codec.h"
#include "nibble/numerics/scale_rule.h"

namespace nibble {

struct AmaxFormula {
  static constexpr BlockStatsNeeded kNeeds = BlockStatsNeeded::kAmax;
  static constexpr int8_t kLow = 0, kHigh = 0;
  AmaxFormula() = default;
  AmaxFormula(const Format&, const TensorScale&) {}
  uint8_t zero(const BlockStats&, float) const { return 0; }
};

template <typename Formula>
struct BlockRule {
  static BlockStats stats_at(const BlockStatsArrays& arrays, uint64_t i) {
    BlockStats stats{.amax = arrays.amax[i]};
    if constexpr (Formula::kNeeds == BlockStatsNeeded::kMinMax) {
      stats.min = arrays.min[i];
      stats.max = arrays.max[i];
    }
    if constexpr (Formula::kNeeds == BlockStatsNeeded::kExtreme) stats.extreme = arrays.extreme[i];
    return stats;
  }

  template <ScaleType kType>
  static void fill(const Formula& formula, const BlockStatsArrays& arrays, uint64_t count,
                   const BlockScaleArrays& out) {
    uint32_t* __restrict stored = out.stored;
    float* __restrict value = out.value;
    for (uint64_t i = 0; i < count; ++i) {
      const uint32_t bits = formula.template stored<kType>(stats_at(arrays, i));
      stored[i] = bits;
      value[i] = scale_decode<kType>(bits);
    }
    if (out.zero == nullptr) return;
    for (uint64_t i = 0; i < count; ++i) out.zero[i] = formula.zero(stats_at(arrays, i), value[i]);
  }

  static void block_scales(const Format& format, const BlockStatsArrays& stats, uint64_t count,
                           const TensorScale& tensor_scale, const BlockScaleArrays& out) {
    const Formula formula(format, tensor_scale);
    switch (format.scale) {
      case ScaleType::kF32: return fill<ScaleType::kF32>(formula, stats, count, out);
      case ScaleType::kBF16: return fill<ScaleType::kBF16>(formula, stats, count, out);
      case ScaleType::kF16: return fill<ScaleType::kF16>(formula, stats, count, out);
      case ScaleType::kE8M0: return fill<ScaleType::kE8M0>(formula, stats, count, out);
      case ScaleType::kE4M3: return fill<ScaleType::kE4M3>(formula, stats, count, out);
      case ScaleType::kNone: return;
    }
  }

  static BlockScale block_scale(const Format& format, const BlockStats& stats, const TensorScale& tensor_scale) {
    BlockScale scale{.clamp_low = Formula::kLow, .clamp_high = Formula::kHigh};
    block_scales(format, {&stats.amax, &stats.min, &stats.max, &stats.extreme}, 1, tensor_scale,
                 {&scale.stored, &scale.value, &scale.zero});
    return scale;
  }
};

// The fields of a row that follow from the formula.
template <typename Formula>
constexpr ScaleRule rule_from(std::string_view name, std::string_view summary, bool (*applies)(const Format&)) {
  return {.name = name,
          .summary = summary,
          .applies = applies,
          .needs = Formula::kNeeds,
          .clamp_low = Formula::kLow,
          .clamp_high = Formula::kHigh,
          .block_scale = BlockRule<Formula>::block_scale,
          .block_scales = BlockRule<Formula>::block_scales};
}

}  // namespace nibble
