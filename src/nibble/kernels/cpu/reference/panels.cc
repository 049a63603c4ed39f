// The reference: panel.h's formulas, one element at a time, for every layout and on every processor.
#include <cmath>
#include <string>

#include "nibble/kernels/cpu/tile_view.h"
#include "nibble/kernels/kernel.h"

namespace nibble {
namespace {

float run_f32(const TileView& tile, uint64_t lane, uint64_t begin, uint64_t cols, const float* x) {
  float even = 0, odd = 0;
  for (uint64_t c = 0; c < cols; c += 2) {
    even = std::fma(tile.value(lane, begin + c), x[c], even);
    odd = std::fma(tile.value(lane, begin + c + 1), x[c + 1], odd);
  }
  return even + odd;
}

// fma'() of panel.h.
float flushed(float x) { return std::abs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x; }

float run_bf16(const TileView& tile, uint64_t lane, uint64_t begin, uint64_t cols, const uint16_t* x) {
  const auto multiply_add = [&](uint64_t c, float sum) {
    return flushed(std::fma(flushed(bf16_decode(x[c])), flushed(tile.value(lane, begin + c)), sum));
  };
  float sum = 0;
  for (uint64_t c = 0; c < cols; c += 2) sum = multiply_add(c, multiply_add(c + 1, sum));
  return sum;
}

// The integer that `value` times a power of two is: E2M1 doubled.
int64_t weight_integer(const TileView& tile, const WeightLayout& layout, uint64_t lane, uint64_t col) {
  return static_cast<int64_t>(tile.value(lane, col) * (layout.codes == CodeKind::kE2M1 ? 2.0F : 1.0F));
}

int64_t run_int8(const TileView& tile, const WeightLayout& layout, uint64_t lane, uint64_t begin, uint64_t cols,
                 const int8_t* codes) {
  const bool four_bits = layout.codes != CodeKind::kInt8;
  int64_t sum = 0;
  for (uint64_t c = 0; c < cols; ++c) {
    const uint64_t at = four_bits ? c / 8 * 8 + (c % 2) * 4 + (c % 8) / 2 : c;
    sum += weight_integer(tile, layout, lane, begin + c) * codes[at];
  }
  return sum;
}

template <ActivationKind kKind>
float element(const PanelTask& task, uint64_t group, uint64_t lane, uint64_t row) {
  const WeightLayout& layout = task.weights->layout;
  const uint64_t run = layout.run_cols(), runs = layout.tile_cols / run;
  float acc = 0;
  for (uint64_t t = 0; t < layout.tiles(); ++t) {
    const TileView tile(*task.weights, group, t);
    const float scale = tile.scale(lane);
    for (uint64_t r = 0; r < runs; ++r) {
      const uint64_t begin = r * run, column = t * layout.tile_cols + begin;
      const uint64_t index = t * runs + r;
      if constexpr (kKind == ActivationKind::kF32) {
        acc = std::fma(run_f32(tile, lane, begin, run, task.f32.row(row) + column), scale, acc);
        if (layout.zero == ZeroPoint::kMin) {
          acc = std::fma(tile.min(lane), task.f32.run_sums[row * task.f32.runs + index], acc);
        }
      } else if constexpr (kKind == ActivationKind::kBF16) {
        acc = run_bf16(tile, lane, begin, run, task.bf16.values + row * task.bf16.padded_k + column) + acc;
      } else {
        const int8_t* codes = task.int8.codes + row * task.int8.padded_k + column;
        const float factor = task.int8.scales[row * task.int8.groups + index];
        acc = std::fma(static_cast<float>(run_int8(tile, layout, lane, begin, run, codes)), scale * factor, acc);
        if (layout.zero == ZeroPoint::kMin) {
          const auto sum = static_cast<float>(task.int8.sums[row * task.int8.groups + index]);
          acc = std::fma(tile.min(lane), factor * sum, acc);
        }
      }
    }
  }
  return acc;
}

template <ActivationKind kKind>
void panel(const PanelTask& task) {
  for (uint64_t group = task.group_begin; group < task.group_end; ++group) {
    for (uint64_t lane = 0; lane < kRowGroup && group * kRowGroup + lane < task.weights->layout.n; ++lane) {
      for (uint64_t t = 0; t < task.tokens; ++t) {
        task.out[t * task.out_stride + group * kRowGroup + lane] = element<kKind>(task, group, lane, task.row_of(t));
      }
    }
  }
}

std::string nothing_lacks() { return ""; }
std::string nothing(const WeightLayout&) { return ""; }
std::string no_integers(const WeightLayout& layout) {
  return layout.has_integers() ? "" : "weights are floats: their products with INT8 are no integers";
}
Panel panel_f32(const WeightLayout&) { return panel<ActivationKind::kF32>; }
std::string bf16_alone(const WeightLayout& layout) {
  return layout.codes == CodeKind::kBF16 ? "" : "it takes BF16 weights";
}
Panel panel_bf16(const WeightLayout& layout) {
  return layout.codes == CodeKind::kBF16 ? panel<ActivationKind::kBF16> : nullptr;
}
Panel panel_int8(const WeightLayout& layout) { return layout.has_integers() ? panel<ActivationKind::kInt8> : nullptr; }

}  // namespace

extern const Kernel kReferenceF32, kReferenceInt8, kReferenceBF16;
const Kernel kReferenceF32 = {"reference", ActivationKind::kF32, 0.01, nothing_lacks, panel_f32, nothing};
const Kernel kReferenceInt8 = {"reference", ActivationKind::kInt8, 0.01, nothing_lacks, panel_int8, no_integers};
const Kernel kReferenceBF16 = {"reference", ActivationKind::kBF16, 0.01, nothing_lacks, panel_bf16, bf16_alone};

}  // namespace nibble
