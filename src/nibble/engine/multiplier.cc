#include "nibble/engine/multiplier.h"

#include "nibble/kernels/cpu/vector/vector_loops.h"

namespace nibble {

const PreparedActivations& Multiplier::prepare(const Product& product) {
  for (size_t i = 0; i < used_; ++i) {
    if (prepared_[i]->serves(*product.weights, product.x, product.x_rows, product.x_stride)) return *prepared_[i];
  }
  if (used_ == prepared_.size()) prepared_.push_back(std::make_unique<PreparedActivations>());
  PreparedActivations& one = *prepared_[used_++];
  one.prepare(*product.weights, product.x, product.x_rows, product.x_stride, pool_);
  return one;
}

void Multiplier::run(std::span<const Product> products) {
  used_ = 0;
  jobs_.clear();
  OpWork work;
  for (const Product& product : products) {
    if (product.tokens == 0) continue;
    PanelTask task;
    prepare(product).give(&task);
    task.weights = &product.weights->matrix;
    task.group_end = task.weights->layout.row_groups();
    task.tokens = product.tokens;
    task.rows = product.rows;
    task.out = product.out;
    task.out_stride = product.out_stride;
    jobs_.push_back({product.weights->choice->panel(product.tokens), task});
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
