#include "nibble/train/model/weight_values.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <utility>

#include "nibble/train/export/rounded_roles.h"

namespace nibble {
namespace {

using torch::Tensor;

// `value` in the passes, the gradient to `master`.
class StraightThrough : public torch::autograd::Function<StraightThrough> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* /*context*/, const Tensor& /*master*/, const Tensor& value) {
    return value.view_as(value);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*context*/,
                                                 torch::autograd::variable_list grads) {
    return {grads[0], Tensor()};
  }
};

}  // namespace

WeightValues::WeightValues(const TrainedTensors& tensors, const RoundingConfig* rounding) {
  std::vector<bool> low_bit(tensors.list().size());
  if (rounding != nullptr) {
    low_bit = low_bit_tensors(tensors, *rounding);
    how_ = FakeQuant{rounding->format, rounding->rule, second_level_of(tensors, *rounding)};
    during_training_ = rounding->during_training;
    slices_share_ = slices_share_scale(tensors, *rounding);
  }
  homes_.reserve(low_bit.size());
  for (size_t i = 0; i < low_bit.size(); ++i) {
    homes_.push_back({tensors.list()[i].name, tensors.list()[i].parts, low_bit[i]});
  }
}

// The matrices of a slice share a second-level scale, as they are stored one below the other here: one matrix to the
// rounding. Blocks of several rows may not reach from one into the next.
Tensor WeightValues::packed_value(const Home& home, const Tensor& bf16) const {
  const Tensor exact = bf16.to(torch::kFloat32);
  if (slices_share_ && exact.dim() == 3) {
    return torch::stack(fake_quantize_together(exact.unbind(0), *how_, home.name), 0);
  }
  if (how_->format.block_rows == 1 || home.parts.size() == 1) return fake_quantize(exact, *how_, home.name);
  const std::vector<int64_t> rows(home.parts.begin(), home.parts.end());
  std::vector<Tensor> parts;
  parts.reserve(rows.size());
  for (const Tensor& part : exact.split_with_sizes(rows, -2)) {
    parts.push_back(fake_quantize(part.contiguous(), *how_, home.name));
  }
  return torch::cat(parts, -2);
}

std::vector<Tensor> WeightValues::of(const std::vector<Tensor>& masters, bool packed) const {
  std::vector<Tensor> values;
  values.reserve(masters.size());
  for (size_t i = 0; i < masters.size(); ++i) {
    const Tensor& master = masters[i];
    Tensor value;
    {
      const at::NoGradGuard no_grad;
      const Tensor bf16 = master.detach().to(torch::kBFloat16);
      const bool low_bit = homes_[i].low_bit && (during_training_ || packed);
      value = low_bit ? packed_value(homes_[i], bf16) : bf16.to(torch::kFloat32);
    }
    values.push_back(master.requires_grad() ? StraightThrough::apply(master, value) : value);
  }
  return values;
}

void round_activations(const TrainedTensors& tensors, const RoundingConfig& rounding, Decoder* decoder) {
  if (!rounding.activations || !rounding.during_training) return;
  const FakeQuant how{*rounding.activations, default_rule(*rounding.activations), SecondLevel::kNone};
  decoder->round_activations([how](const Tensor& x) { return fake_quantize(x, how, "an activation"); },
                             rounded_roles(tensors, rounding));
}

}  // namespace nibble
