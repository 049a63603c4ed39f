#include "nibble/engine/prepared_activations.h"

namespace nibble {

void PreparedActivations::prepare(const Linear& weights, const float* x, uint64_t rows, uint64_t stride,
                                  ThreadPool* pool) {
  x_ = x;
  rows_ = rows;
  stride_ = stride;
  kind_ = weights.activations;
  rounding_ = weights.rounding;
  layout_ = weights.matrix.layout;
  switch (kind_) {
    case ActivationKind::kF32: f32_ = padder_.run(layout_, x, rows, stride, rounding_); return;
    case ActivationKind::kInt8: int8_ = quantizer_.run(layout_, x, rows, stride, pool); return;
    case ActivationKind::kE2M1: e2m1_ = e2m1_quantizer_.run(layout_, x, rows, stride, pool); return;
    case ActivationKind::kBF16: bf16_ = rounder_.run(layout_, x, rows, stride); return;
  }
}

bool PreparedActivations::serves(const Linear& weights, const float* x, uint64_t rows, uint64_t stride) const {
  const WeightLayout& wanted = weights.matrix.layout;
  if (x_ != x || rows_ != rows || stride_ != stride) return false;
  if (kind_ != weights.activations || rounding_ != weights.rounding) return false;
  if (layout_.k != wanted.k || layout_.padded_k() != wanted.padded_k()) return false;
  const bool same_runs = layout_.zero == wanted.zero && layout_.run_cols() == wanted.run_cols();
  // Minima need the sums of runs; the same codes need the same offset, order and groups.
  if (kind_ == ActivationKind::kBF16) return true;
  if (kind_ == ActivationKind::kF32) return wanted.zero != ZeroPoint::kMin || same_runs;
  return layout_.codes == wanted.codes && layout_.scale == wanted.scale && same_runs;
}

void PreparedActivations::give(PanelTask* task) const {
  task->f32 = f32_;
  task->int8 = int8_;
  task->e2m1 = e2m1_;
  task->bf16 = bf16_;
}

}  // namespace nibble
