// Four-bit floats by four-bit floats (W4A4), as the reference alone computes them.
//
// nibble's definition: a block's dot product times its two scales is exact; these are added in float32, to nearest
// even, block after block; the sum is multiplied by the product of the second-level scales. The vendor of the tensor
// cores specifies neither order nor rounding; the second kernel imitates a published model of theirs (tensor_core.h),
// 64 columns a step.
#include <algorithm>
#include <string>

#include "nibble/kernels/cpu/reference/tensor_core.h"
#include "nibble/kernels/cpu/tile_view.h"
#include "nibble/kernels/kernel.h"

namespace nibble {
namespace {

// One output: a row of weights and a token.
class Element {
 public:
  Element(const PanelTask& task, uint64_t group, uint64_t lane, uint64_t row)
      : task_(task),
        layout_(task.weights->layout),
        unscaled_{task.weights->layout, task.weights->data, 1},
        group_(group),
        lane_(lane),
        row_(row) {}

  float defined() const {
    float acc = 0;
    for (uint64_t t = 0; t < layout_.tiles(); ++t) {
      const TileView tile(unscaled_, group_, t);
      // At most 32 · 36 in quarters, times 4 bits twice: exact in float32.
      const double dot = sum(tile, t, 0, layout_.tile_cols).first;
      acc += static_cast<float>(dot * static_cast<double>(tile.scale(lane_)) * static_cast<double>(scale_of(t)));
    }
    return acc * factor();
  }

  float imitated() const {
    float acc = 0;
    const uint64_t groups = layout_.k / kTensorCoreGroup;
    for (uint64_t first = 0; first < groups; first += kTensorCoreGroups) {
      TensorCoreGroup step[kTensorCoreGroups];
      for (uint64_t g = 0; g < kTensorCoreGroups; ++g) {
        step[g].all_zero = true;
        if (first + g < groups) step[g] = group_at(first + g);
      }
      acc = tensor_core_step(step, acc);
    }
    return acc * factor();
  }

 private:
  float factor() const { return task_.weights->multiplier * task_.e2m1.second[row_]; }

  float scale_of(uint64_t block) const {
    return scale_decode(layout_.scale, std::to_integer<uint32_t>(task_.e2m1.scales[row_ * task_.e2m1.blocks + block]));
  }

  // Of the products of columns [begin, begin + cols) of a tile, and whether all of them are zero.
  std::pair<double, bool> sum(const TileView& tile, uint64_t index, uint64_t begin, uint64_t cols) const {
    double total = 0;
    bool all_zero = true;
    for (uint64_t c = begin; c < begin + cols; ++c) {
      const uint64_t column = index * layout_.tile_cols + c;
      const auto pair = std::to_integer<uint8_t>(task_.e2m1.codes[row_ * task_.e2m1.code_stride + column / 2]);
      const float x = e2m1_decode(column % 2 == 0 ? pair & 15 : pair >> 4);
      const double product = static_cast<double>(tile.value(lane_, c)) * static_cast<double>(x);
      all_zero = all_zero && product == 0;
      total += product;
    }
    return {total, all_zero};
  }

  TensorCoreGroup group_at(uint64_t index) const {
    const uint64_t tile_index = index * kTensorCoreGroup / layout_.tile_cols;
    const TileView tile(unscaled_, group_, tile_index);
    const auto [total, all_zero] =
        sum(tile, tile_index, index * kTensorCoreGroup % layout_.tile_cols, kTensorCoreGroup);
    return {total, all_zero, tile.scale(lane_), scale_of(tile_index), layout_.scale == ScaleType::kE8M0 ? -127 : -6};
  }

  const PanelTask& task_;
  const WeightLayout& layout_;
  ResidentMatrix unscaled_;  // scales without the second level, which comes last
  uint64_t group_, lane_, row_;
};

template <float (Element::*kCompute)() const>
void panel(const PanelTask& task) {
  for (uint64_t group = task.group_begin; group < task.group_end; ++group) {
    for (uint64_t lane = 0; lane < kRowGroup && group * kRowGroup + lane < task.weights->layout.n; ++lane) {
      for (uint64_t t = 0; t < task.tokens; ++t) {
        task.out[t * task.out_stride + group * kRowGroup + lane] =
            (Element(task, group, lane, task.row_of(t)).*kCompute)();
      }
    }
  }
}

std::string nothing_lacks() { return ""; }
std::string obstacle(const WeightLayout& layout) {
  return e2m1_activation_format(layout).empty() ? "weights are no blocks of four-bit floats" : "";
}
Panel defined(const WeightLayout& layout) { return obstacle(layout).empty() ? panel<&Element::defined> : nullptr; }
Panel imitated(const WeightLayout& layout) { return obstacle(layout).empty() ? panel<&Element::imitated> : nullptr; }

}  // namespace

extern const Kernel kReferenceE2M1, kTensorCoreModel;
const Kernel kReferenceE2M1 = {"reference", ActivationKind::kE2M1, 0.01, nothing_lacks, defined, obstacle};
const Kernel kTensorCoreModel = {"tensor-core-model", ActivationKind::kE2M1, 0.005, nothing_lacks, imitated, obstacle};

}  // namespace nibble
