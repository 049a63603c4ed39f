#include "nibble/train/loop/optimizer.h"

#include <torch/types.h>

#include <cmath>

namespace nibble {

using torch::Tensor;

AdamW::AdamW(const std::vector<Tensor>& weights, const OptimizerConfig& config) : weights_(weights), config_(config) {
  for (const Tensor& weight : weights_) {
    const bool learns = weight.requires_grad();
    const auto options = weight.options().requires_grad(false);
    first_.push_back(learns ? torch::zeros(weight.sizes(), options) : Tensor());
    second_.push_back(learns ? torch::zeros(weight.sizes(), options) : Tensor());
  }
}

double AdamW::step(double learning_rate) {
  const at::NoGradGuard no_grad;
  std::vector<Tensor> squares;
  for (const Tensor& weight : weights_) {
    if (weight.grad().defined()) squares.push_back(weight.grad().square().sum());
  }
  if (squares.empty()) return 0;
  const double norm = std::sqrt(torch::stack(squares).sum().item<double>());
  const double scale = config_.clip > 0 && norm > config_.clip ? config_.clip / (norm + 1e-6) : 1;
  if (std::isfinite(norm)) {
    ++steps_;
    const auto count = static_cast<double>(steps_);
    const double first_share = 1 - std::pow(config_.beta1, count), second_share = 1 - std::pow(config_.beta2, count);
    for (size_t i = 0; i < weights_.size(); ++i) {
      Tensor weight = weights_[i];
      if (!weight.grad().defined()) continue;
      const Tensor grad = scale == 1 ? weight.grad() : weight.grad() * scale;
      first_[i].mul_(config_.beta1).add_(grad, 1 - config_.beta1);
      second_[i].mul_(config_.beta2).addcmul_(grad, grad, 1 - config_.beta2);
      if (weight.dim() > 1 && config_.weight_decay != 0) weight.mul_(1 - learning_rate * config_.weight_decay);
      const Tensor root = (second_[i] / second_share).sqrt_().add_(config_.epsilon);
      weight.addcdiv_(first_[i], root, -learning_rate / first_share);
    }
  }
  for (Tensor& weight : weights_) weight.mutable_grad() = Tensor();
  return norm;
}

}  // namespace nibble
