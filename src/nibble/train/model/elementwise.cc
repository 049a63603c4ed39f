#include "nibble/train/model/elementwise.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

namespace nibble {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

class RmsNorm : public Function<RmsNorm> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, double eps) {
    const Tensor inverse = x.square().mean(-1, true).add_(eps).rsqrt_();
    context->save_for_backward({x, weight, inverse});
    return (x * inverse).mul_(weight);
  }

  // With n = x · r, y = n · w, g = dy · w: dx = r · (g - n · mean(g · n)), dw = Σ dy · n.
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const Tensor normed = saved[0] * saved[2];
    const Tensor width_sum = (grads[0] * normed);
    const Tensor dweight = width_sum.reshape({-1, saved[1].size(0)}).sum(0);
    const Tensor mean = width_sum.mul(saved[1]).mean(-1, true);
    Tensor dx = grads[0] * saved[1];
    dx.sub_(normed.mul(mean)).mul_(saved[2]);
    return {dx, dweight, Tensor()};
  }
};

Tensor turned(const Tensor& x, const Tensor& cos, const Tensor& sin, double direction) {
  const int64_t half = x.size(3) / 2;
  const Tensor c = cos.unsqueeze(1), s = sin.unsqueeze(1);  // (T, 1, half)
  const Tensor first = x.narrow(3, 0, half), second = x.narrow(3, half, half);
  Tensor out = torch::empty(x.sizes(), x.options().requires_grad(false));
  out.narrow(3, 0, half).copy_(first * c).sub_(second * s, direction);
  out.narrow(3, half, half).copy_(second * c).add_(first * s, direction);
  return out;
}

class Rotate : public Function<Rotate> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& cos, const Tensor& sin) {
    context->save_for_backward({cos, sin});
    return turned(x, cos, sin, 1);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    return {turned(grads[0], saved[0], saved[1], -1), Tensor(), Tensor()};
  }
};

class Silu : public Function<Silu> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    const int64_t wide = x.size(1) / 2;
    return torch::silu(x.narrow(1, 0, wide)).mul_(x.narrow(1, wide, wide));
  }

  // d silu(g) = s · (1 + g · (1 - s)), s the sigmoid.
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const Tensor x = context->get_saved_variables()[0];
    const int64_t wide = x.size(1) / 2;
    const Tensor gate = x.narrow(1, 0, wide), up = x.narrow(1, wide, wide), share = torch::sigmoid(gate);
    Tensor dx = torch::empty(x.sizes(), x.options().requires_grad(false));
    Tensor slope = (1 - share).mul_(gate).add_(1).mul_(share);
    dx.narrow(1, 0, wide).copy_(slope.mul_(up).mul_(grads[0]));
    dx.narrow(1, wide, wide).copy_((gate * share).mul_(grads[0]));
    return {dx};
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) { return RmsNorm::apply(x, weight, eps); }

Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin) { return Rotate::apply(x, cos, sin); }

Tensor swiglu(const Tensor& x, const SwigluSettings& settings) {
  if (settings.limit == 0) return Silu::apply(x);
  const int64_t wide = x.size(1) / 2;
  const Tensor gate = x.narrow(1, 0, wide).clamp_max(settings.limit);
  const Tensor up = x.narrow(1, wide, wide).clamp(-settings.limit, settings.limit);
  return gate * torch::sigmoid(gate * settings.alpha) * (up + 1);
}

}  // namespace nibble
