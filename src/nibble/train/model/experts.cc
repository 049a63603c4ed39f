#include "nibble/train/model/experts.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <utility>
#include <vector>

namespace nibble {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Slots (token, choice), sorted by expert.
struct Sorted {
  Tensor order;    // (T · k): slot of each sorted row
  Tensor inverse;  // (T · k): row of each slot
  std::vector<int64_t> counts;
};

Sorted sort_slots(const Tensor& experts, int64_t expert_count) {
  const Tensor flat = experts.reshape({-1});
  Sorted sorted;
  sorted.order = torch::argsort(flat, /*stable=*/true, 0, false);
  sorted.inverse = torch::empty_like(sorted.order);
  sorted.inverse.scatter_(0, sorted.order, torch::arange(flat.size(0), flat.options()));
  const Tensor counts = torch::bincount(flat, {}, expert_count).to(torch::kCPU);
  sorted.counts.assign(counts.data_ptr<int64_t>(), counts.data_ptr<int64_t>() + expert_count);
  return sorted;
}

// Every slot's token, in the sorted order; the gradient gathers each token's slots again.
class Dispatch : public Function<Dispatch> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& order, const Tensor& inverse,
                        int64_t slots) {
    context->save_for_backward({inverse});
    context->saved_data["slots"] = slots;
    return x.index_select(0, order.div(slots, "floor"));
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const Tensor inverse = context->get_saved_variables()[0];
    const int64_t slots = context->saved_data["slots"].toInt();
    const Tensor by_slot = grads[0].index_select(0, inverse).view({-1, slots, grads[0].size(1)});
    return {by_slot.sum(1), Tensor(), Tensor(), Tensor()};
  }
};

// Σ over a token's slots of weight · row.
class Combine : public Function<Combine> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& rows, const Tensor& weights, const Tensor& order,
                        const Tensor& inverse) {
    context->save_for_backward({rows, weights, order, inverse});
    const Tensor by_slot = rows.index_select(0, inverse).view({weights.size(0), weights.size(1), rows.size(1)});
    return by_slot.mul(weights.unsqueeze(2)).sum(1);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const Tensor &rows = saved[0], &weights = saved[1], &order = saved[2], &inverse = saved[3];
    const int64_t slots = weights.size(1);
    Tensor of_rows = grads[0].index_select(0, order.div(slots, "floor"));  // by sorted row
    const Tensor dweights = (of_rows * rows).sum(1).index_select(0, inverse).view(weights.sizes());
    of_rows.mul_(weights.reshape({-1}).index_select(0, order).unsqueeze(1));
    return {of_rows, dweights, Tensor(), Tensor()};
  }
};

// Each expert's rows times its matrix, one below the other.
Tensor linear_of_each(const Tensor& rows, const std::vector<int64_t>& counts, const Tensor& matrices,
                      const Tensor& biases) {
  const std::vector<Tensor> inputs = rows.split_with_sizes(counts, 0), weights = matrices.unbind(0);
  const std::vector<Tensor> added = biases.defined() ? biases.unbind(0) : std::vector<Tensor>{};
  std::vector<Tensor> outputs;
  outputs.reserve(inputs.size());
  for (size_t e = 0; e < inputs.size(); ++e) {
    outputs.push_back(added.empty() ? torch::mm(inputs[e], weights[e].t())
                                    : torch::addmm(added[e], inputs[e], weights[e].t()));
  }
  return torch::cat(outputs, 0);
}

}  // namespace

TokenRouting choose_experts(const Tensor& logits, const ModelSpec& spec) {
  const auto k = static_cast<int64_t>(spec.experts_per_token);
  TokenRouting routing;
  routing.chances = torch::softmax(logits, 1);
  const bool chosen_first = spec.router == RouterKind::kTopKSoftmax;
  const Tensor scores = chosen_first ? logits : routing.chances;
  {
    const at::NoGradGuard no_grad;
    // A stable sort keeps the lower expert first, as the engine does; topk promises no order among equals.
    routing.experts =
        std::get<1>(torch::sort(scores, /*stable=*/true, 1, /*descending=*/true)).narrow(1, 0, k).contiguous();
  }
  const Tensor chosen = scores.gather(1, routing.experts);
  if (chosen_first) {
    routing.weights = torch::softmax(chosen, 1);
  } else {
    routing.weights = spec.norm_topk_prob ? chosen / chosen.sum(1, true) : chosen;
  }
  return routing;
}

Tensor balance_loss(const TokenRouting& routing) {
  const int64_t experts = routing.chances.size(1);
  const Tensor counts = torch::bincount(routing.experts.reshape({-1}), {}, experts).to(routing.chances.scalar_type());
  const Tensor shares = counts / static_cast<double>(routing.experts.size(0));
  return (shares * routing.chances.mean(0)).sum() * static_cast<double>(experts);
}

Tensor run_experts(const Tensor& x, const TokenRouting& routing, const ExpertWeights& weights,
                   const SwigluSettings& activation, const std::function<Tensor(const Tensor&)>& rounded) {
  const Sorted sorted = sort_slots(routing.experts, weights.gate_up.size(0));
  Tensor inputs = Dispatch::apply(x, sorted.order, sorted.inverse, routing.experts.size(1));
  if (rounded) inputs = rounded(inputs);
  Tensor active = swiglu(linear_of_each(inputs, sorted.counts, weights.gate_up, weights.gate_up_bias), activation);
  if (rounded) active = rounded(active);
  const Tensor rows = linear_of_each(active, sorted.counts, weights.down, weights.down_bias);
  return Combine::apply(rows, routing.weights, sorted.order, sorted.inverse);
}

}  // namespace nibble
