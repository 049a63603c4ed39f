#include "nibble/train/model/attention.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <torch/version.h>

#include <cmath>
#include <limits>

#include "nibble/train/model/attention_tiles.h"

namespace nibble {
namespace {

using torch::Tensor;

// An input of the graph has to be a tensor; one without elements stands for none.
Tensor sinks_of(const Tensor& input) { return input.numel() == 0 ? Tensor() : input.detach(); }

class TiledAttention : public torch::autograd::Function<TiledAttention> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& sinks, double scale, int64_t window) {
    AttentionTiles tiles{q.detach() * scale, k.detach(), v.detach(), sinks_of(sinks), window};
    const auto [out, lse] = tiles.forward();
    context->save_for_backward({tiles.q, k, v, sinks, out, lse});
    context->saved_data["scale"] = scale;
    context->saved_data["window"] = window;
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const auto saved = context->get_saved_variables();
    AttentionTiles tiles{saved[0].detach(), saved[1].detach(), saved[2].detach(), sinks_of(saved[3]),
                         context->saved_data["window"].toInt()};
    AttentionGradients out = tiles.backward(saved[4].detach(), saved[5].detach(), grads[0].detach().contiguous());
    out.q.mul_(context->saved_data["scale"].toDouble());
    return {out.q, out.k, out.v, out.sinks, Tensor(), Tensor()};
  }
};

// (T, T): 0 where query i sees key j, -infinity elsewhere.
Tensor mask_of(int64_t tokens, int64_t window, const torch::TensorOptions& options) {
  const Tensor places = torch::arange(tokens, options.dtype(torch::kInt64));
  const Tensor back = places.unsqueeze(1) - places.unsqueeze(0);
  Tensor hidden = back.lt(0);
  if (window > 0) hidden = hidden.logical_or(back.ge(window));
  return torch::zeros({tokens, tokens}, options).masked_fill_(hidden, -std::numeric_limits<double>::infinity());
}

Tensor per_head(const Tensor& x, int64_t heads) {
  Tensor turned = x.transpose(1, 2);  // (B, heads, T, D)
  return turned.size(1) == heads ? turned : turned.repeat_interleave(heads / turned.size(1), 1);
}

}  // namespace

Tensor attention_by_products(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& sinks,
                             const AttentionSettings& settings) {
  const int64_t heads = q.size(2), tokens = q.size(1);
  const Tensor queries = q.transpose(1, 2), keys = per_head(k, heads), values = per_head(v, heads);
  Tensor scores = torch::matmul(queries * settings.scale, keys.transpose(2, 3));
  scores = scores + mask_of(tokens, settings.window, q.options().requires_grad(false));
  if (sinks.defined()) {
    const Tensor column = sinks.view({1, heads, 1, 1}).expand({q.size(0), heads, tokens, 1});
    scores = torch::softmax(torch::cat({scores, column}, 3), 3).narrow(3, 0, tokens);
  } else {
    scores = torch::softmax(scores, 3);
  }
  return torch::matmul(scores, values).transpose(1, 2).contiguous();
}

Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& sinks,
                        const AttentionSettings& settings) {
  if (q.is_cpu()) {
    const Tensor given = sinks.defined() ? sinks : torch::empty({0}, q.options().requires_grad(false));
    return TiledAttention::apply(q, k, v, given, settings.scale, settings.window);
  }
#if TORCH_VERSION_MAJOR >= 2
  const bool plain = !sinks.defined() && (settings.window == 0 || settings.window >= q.size(1));
  if (plain) {
    // The framework's own scale is 1 / sqrt(D).
    const double own = 1 / std::sqrt(static_cast<double>(q.size(3)));
    return at::scaled_dot_product_attention((q * (settings.scale / own)).transpose(1, 2), per_head(k, q.size(2)),
                                            per_head(v, q.size(2)), {}, 0.0, true)
        .transpose(1, 2)
        .contiguous();
  }
#endif
  return attention_by_products(q, k, v, sinks, settings);
}

}  // namespace nibble
