// A kernel as somebody would add one: float32 weights, one token after the other, and slower than it claims.
#include <cmath>

#include "nibble/kernels/kernel.h"

namespace nibble {
namespace {

// panel.h's formula for rows without scales.
float row_of(const float* weights, uint64_t columns, const float* x) {
  float acc = 0;
  for (uint64_t run = 0; run < columns; run += 32) {
    float sums[2] = {0, 0};
    for (uint64_t c = run; c < run + 32; ++c) sums[c % 2] = std::fma(weights[c * kRowGroup], x[c], sums[c % 2]);
    acc = std::fma(sums[0] + sums[1], 1.0F, acc);
  }
  return acc;
}

void multiply(const PanelTask& task) {
  const WeightLayout& layout = task.weights->layout;
  for (uint64_t group = task.group_begin; group < task.group_end; ++group) {
    const auto* weights = reinterpret_cast<const float*>(task.weights->row_group(group));
    for (uint64_t lane = 0; lane < kRowGroup && group * kRowGroup + lane < layout.n; ++lane) {
      for (uint64_t t = 0; t < task.tokens; ++t) {
        task.out[t * task.out_stride + group * kRowGroup + lane] =
            row_of(weights + lane, layout.padded_k(), task.f32.row(task.row_of(t)));
      }
    }
  }
}

std::string nothing_lacks() { return ""; }
Panel panel_of(const WeightLayout& layout) { return layout.codes == CodeKind::kF32 ? multiply : nullptr; }
std::string obstacle(const WeightLayout& layout) {
  return panel_of(layout) != nullptr ? "" : "the canary sings float32 alone";
}

}  // namespace

extern const Kernel kCanaryKernel;
const Kernel kCanaryKernel = {"canary", ActivationKind::kF32, 1e6, nothing_lacks, panel_of, obstacle};

}  // namespace nibble
