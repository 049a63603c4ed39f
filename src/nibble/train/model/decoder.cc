#include "nibble/train/model/decoder.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "nibble/base/check.h"
#include "nibble/train/model/attention.h"

namespace nibble {
namespace {

using torch::Tensor;

Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return bias.defined() ? torch::addmm(bias, x, weight.t()) : torch::mm(x, weight.t());
}

SwigluSettings swiglu_of(const ModelSpec& spec) {
  return spec.activation == Activation::kClampedSwiglu ? SwigluSettings{spec.swiglu_limit, spec.swiglu_alpha}
                                                       : SwigluSettings{};
}

int64_t signed_of(uint64_t number) { return static_cast<int64_t>(number); }

}  // namespace

// What the layers of one pass share.
struct Decoder::Pass {
  const std::vector<Tensor>* weights = nullptr;
  int64_t rows = 0, length = 0;  // B, T
  Tensor cos, sin;               // (T, D/2)
  std::vector<Tensor> balance;

  Tensor at(int64_t index) const { return index < 0 ? Tensor() : (*weights)[static_cast<size_t>(index)]; }
};

Decoder::Decoder(const TrainedTensors& tensors, torch::Device device)
    : spec_(tensors.spec()), device_(device), rotary_(spec_.rope, spec_.head_dim, false) {
  embedding_ = tensors.find(spec_.prefix + "embed_tokens.weight");
  final_norm_ = tensors.find(spec_.prefix + "norm.weight");
  for (size_t i = 0; i < tensors.list().size(); ++i) {
    if (tensors.list()[i].role == Role::kHead) head_ = static_cast<int64_t>(i);
  }
  NIBBLE_CHECK(embedding_ >= 0 && final_norm_ >= 0);
  if (head_ < 0) head_ = embedding_;
  for (size_t i = 0; i < spec_.layers.size(); ++i) layers_.push_back(find_layer(tensors, static_cast<int32_t>(i)));
}

Decoder::Layer Decoder::find_layer(const TrainedTensors& tensors, int32_t index) const {
  const std::string prefix = spec_.layer_prefix(index);
  const auto find = [&](const std::string& name) { return tensors.find(prefix + name); };
  const auto find_mlp = [&](const std::string& block) {
    return Layer::Mlp{find(block + "gate_up"), find(block + "gate_up.bias"), find(block + "down"),
                      find(block + "down.bias")};
  };
  Layer layer;
  layer.input_norm = find("input_layernorm.weight");
  layer.post_norm = find("post_attention_layernorm.weight");
  layer.qkv = find("self_attn.qkv_proj");
  layer.qkv_bias = find("self_attn.qkv_proj.bias");
  layer.o = find("self_attn.o_proj.weight");
  layer.o_bias = find("self_attn.o_proj.bias");
  layer.q_norm = find("self_attn.q_norm.weight");
  layer.k_norm = find("self_attn.k_norm.weight");
  layer.sinks = find("self_attn.sinks");
  for (const std::string block : {"mlp.gate", "mlp.router", "block_sparse_moe.gate"}) {
    if (find(block + ".weight") < 0) continue;
    layer.router = find(block + ".weight");
    layer.router_bias = find(block + ".bias");
  }
  layer.shared_gate = find("mlp.shared_expert_gate.weight");
  layer.experts = find_mlp("mlp.experts.");
  layer.dense = find_mlp("mlp.");
  layer.shared = find_mlp("mlp.shared.");
  layer.window = signed_of(spec_.layers[static_cast<size_t>(index)].sliding_window);
  NIBBLE_CHECK(layer.input_norm >= 0 && layer.post_norm >= 0 && layer.qkv >= 0 && layer.o >= 0);
  NIBBLE_CHECK(layer.dense.down >= 0 || (layer.experts.down >= 0 && layer.router >= 0));
  return layer;
}

std::vector<Tensor> Decoder::parameters(const TrainedTensors& tensors, const std::vector<Role>& trained) const {
  std::vector<Tensor> all;
  all.reserve(tensors.list().size());
  for (const TrainedTensor& tensor : tensors.list()) {
    std::vector<int64_t> shape(tensor.shape.begin(), tensor.shape.end());
    const auto options = torch::TensorOptions().dtype(torch::kFloat32);
    Tensor values = torch::empty(shape, options);
    std::copy(tensor.values.begin(), tensor.values.end(), values.data_ptr<float>());
    values = values.to(device_);
    const bool learns = trained.empty() || std::ranges::find(trained, tensor.role) != trained.end();
    all.push_back(values.set_requires_grad(learns));
  }
  return all;
}

void Decoder::round_activations(Rounding rounding, std::vector<Role> roles) {
  rounding_ = std::move(rounding);
  rounded_roles_ = std::move(roles);
}

Decoder::Rounding Decoder::rounding_of(Role role) const {
  return std::ranges::find(rounded_roles_, role) != rounded_roles_.end() ? rounding_ : Rounding();
}

Tensor Decoder::attend(const Pass& pass, const Layer& layer, const Tensor& x) const {
  const int64_t heads = signed_of(spec_.heads), groups = signed_of(spec_.kv_heads), width = signed_of(spec_.head_dim);
  const Rounding rounded = rounding_of(Role::kAttention);
  const Tensor qkv =
      affine(rounded ? rounded(x) : x, pass.at(layer.qkv), pass.at(layer.qkv_bias)).view({pass.rows, pass.length, -1});
  const auto head_view = [&](int64_t first, int64_t count) {
    return qkv.narrow(2, first, count * width).view({pass.rows, pass.length, count, width});
  };
  Tensor q = head_view(0, heads), k = head_view(heads * width, groups);
  const Tensor v = head_view((heads + groups) * width, groups);
  if (layer.q_norm >= 0) {
    q = rms_norm(q, pass.at(layer.q_norm), spec_.rms_norm_eps);
    k = rms_norm(k, pass.at(layer.k_norm), spec_.rms_norm_eps);
  }
  AttentionSettings settings;
  settings.scale = rope_softmax_factor(spec_.rope) / std::sqrt(static_cast<double>(width));
  settings.window = layer.window;
  Tensor out =
      causal_attention(rotate(q, pass.cos, pass.sin), rotate(k, pass.cos, pass.sin), v, pass.at(layer.sinks), settings)
          .view({pass.rows * pass.length, heads * width});
  return affine(rounded ? rounded(out) : out, pass.at(layer.o), pass.at(layer.o_bias));
}

Tensor Decoder::mlp(const Pass& pass, const Layer::Mlp& names, Role role, const Tensor& x) const {
  const Rounding rounded = rounding_of(role);
  const Tensor wide = affine(rounded ? rounded(x) : x, pass.at(names.gate_up), pass.at(names.gate_up_bias));
  const Tensor active = swiglu(wide, swiglu_of(spec_));
  return affine(rounded ? rounded(active) : active, pass.at(names.down), pass.at(names.down_bias));
}

Tensor Decoder::moe(Pass* pass, const Layer& layer, const Tensor& x) const {
  const TokenRouting routing = choose_experts(affine(x, pass->at(layer.router), pass->at(layer.router_bias)), spec_);
  pass->balance.push_back(balance_loss(routing));
  const ExpertWeights weights{pass->at(layer.experts.gate_up), pass->at(layer.experts.down),
                              pass->at(layer.experts.gate_up_bias), pass->at(layer.experts.down_bias)};
  Tensor out = run_experts(x, routing, weights, swiglu_of(spec_), rounding_of(Role::kRoutedExpert));
  if (layer.shared.down < 0) return out;
  const Tensor shared = mlp(*pass, layer.shared, Role::kSharedExpert, x);
  if (layer.shared_gate < 0) return out + shared;
  return out + torch::sigmoid(affine(x, pass->at(layer.shared_gate), {})) * shared;
}

DecoderOutput Decoder::run(const std::vector<Tensor>& weights, const Tensor& tokens) const {
  Pass pass;
  pass.weights = &weights;
  pass.rows = tokens.size(0);
  pass.length = tokens.size(1);
  const auto half = signed_of(rotary_.half());
  pass.cos = torch::empty({pass.length, half});
  pass.sin = torch::empty({pass.length, half});
  for (int64_t t = 0; t < pass.length; ++t) {
    rotary_.angles(static_cast<uint64_t>(t), pass.cos.data_ptr<float>() + t * half,
                   pass.sin.data_ptr<float>() + t * half);
  }
  pass.cos = pass.cos.to(device_);
  pass.sin = pass.sin.to(device_);
  Tensor x = torch::embedding(pass.at(embedding_), tokens.reshape({-1}));
  for (const Layer& layer : layers_) {
    x = x + attend(pass, layer, rms_norm(x, pass.at(layer.input_norm), spec_.rms_norm_eps));
    const Tensor normed = rms_norm(x, pass.at(layer.post_norm), spec_.rms_norm_eps);
    x = x + (layer.experts.down >= 0 ? moe(&pass, layer, normed) : mlp(pass, layer.dense, Role::kDenseMlp, normed));
  }
  DecoderOutput out;
  out.logits = torch::mm(rms_norm(x, pass.at(final_norm_), spec_.rms_norm_eps), pass.at(head_).t());
  if (!pass.balance.empty()) out.balance = torch::stack(pass.balance).mean();
  return out;
}

}  // namespace nibble
