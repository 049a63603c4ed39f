#include "nibble/engine/multiplier.h"

#include "nibble/kernels/cpu/vector/vector_loops.h"

namespace nibble {

bool Multiplier::Prepared::serves(const Product& product) const {
  const WeightLayout& wanted = product.weights->matrix.layout;
  if (x != product.x || kind != product.weights->activations || rows != product.x_rows || stride != product.x_stride)
    return false;
  if (layout.k != wanted.k || layout.padded_k() != wanted.padded_k()) return false;
  const bool same_runs = layout.zero == wanted.zero && layout.run_cols() == wanted.run_cols();
  // Minima need the sums of runs; the same codes need the same offset, order and groups.
  if (kind == ActivationKind::kF32) return wanted.zero != ZeroPoint::kMin || same_runs;
  return layout.codes == wanted.codes && layout.scale == wanted.scale && same_runs;
}

const Multiplier::Prepared& Multiplier::prepare(const Product& product) {
  for (size_t i = 0; i < used_; ++i) {
    if (prepared_[i]->serves(product)) return *prepared_[i];
  }
  if (used_ == prepared_.size()) prepared_.push_back(std::make_unique<Prepared>());
  Prepared& one = *prepared_[used_++];
  one.x = product.x;
  one.kind = product.weights->activations;
  one.layout = product.weights->matrix.layout;
  one.rows = product.x_rows;
  one.stride = product.x_stride;
  if (one.kind == ActivationKind::kInt8) {
    one.int8 = one.quantizer.run(one.layout, product.x, product.x_rows, product.x_stride, pool_);
  } else if (one.kind == ActivationKind::kE2M1) {
    one.e2m1 = one.e2m1_quantizer.run(one.layout, product.x, product.x_rows, product.x_stride, pool_);
  } else {
    one.f32 = one.padder.run(one.layout, product.x, product.x_rows, product.x_stride);
  }
  return one;
}

void Multiplier::run(std::span<const Product> products) {
  used_ = 0;
  jobs_.clear();
  OpWork work;
  for (const Product& product : products) {
    if (product.tokens == 0) continue;
    const Prepared& activations = prepare(product);
    PanelTask task;
    task.weights = &product.weights->matrix;
    task.group_end = task.weights->layout.row_groups();
    task.tokens = product.tokens;
    task.rows = product.rows;
    task.out = product.out;
    task.out_stride = product.out_stride;
    task.f32 = activations.f32;
    task.int8 = activations.int8;
    task.e2m1 = activations.e2m1;
    jobs_.push_back({product.weights->panel, task});
    work += product_work(task.weights->layout, product.weights->activations, product.tokens);
  }
  if (log_ != nullptr) log_->push_back(work);
  run_panels(jobs_, pool_);
  const VectorLoops& loops = vector_loops();
  for (const Product& product : products) {
    const std::vector<float>& bias = product.weights->bias;
    if (bias.empty()) continue;
    for (uint64_t t = 0; t < product.tokens; ++t) {
      loops.add(product.out + t * product.out_stride, bias.data(), bias.size());
    }
  }
}

}  // namespace nibble
