#include "nibble/train/experiments/table_walk_net.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "nibble/base/rng.h"
#include "nibble/train/experiments/table_walk_rows.h"
#include "nibble/train/threads.h"

namespace nibble {
namespace {

// Values of `a` whose contexts one thread takes at a time.
constexpr int64_t kPieceOfA = 8;

enum class NetDraw : uint64_t { kEmbedding = 10, kW1, kC1, kW2, kC2 };

void fill(torch::Tensor& tensor, uint64_t seed, NetDraw what, double bound) {
  const uint64_t stream = random_bits(seed, static_cast<uint64_t>(what));
  auto* values = tensor.data_ptr<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const auto index = static_cast<uint64_t>(i);
    values[i] = static_cast<float>(what == NetDraw::kEmbedding ? random_normal(stream, index)
                                                               : bound * (2 * random_uniform(stream, index) - 1));
  }
}

}  // namespace

int64_t TableWalkShape::parameters() const {
  return symbols * embedding + hidden * (2 * embedding + 1) + symbols * (hidden + 1);
}

TableWalkTensors::TableWalkTensors(const TableWalkShape& net_shape)
    : shape(net_shape), all(torch::zeros({net_shape.parameters()})) {
  int64_t used = 0;
  const auto take = [&](const std::vector<int64_t>& sizes) {
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    torch::Tensor view = all.narrow(0, used, count).view(sizes);
    used += count;
    return view;
  };
  embedding = take({net_shape.symbols, net_shape.embedding});
  w1 = take({net_shape.hidden, 2 * net_shape.embedding});
  c1 = take({net_shape.hidden});
  w2 = take({net_shape.symbols, net_shape.hidden});
  c2 = take({net_shape.symbols});
}

TableWalkTensors TableWalkTensors::clone() const {
  TableWalkTensors copy(shape);
  copy.all.copy_(all);
  return copy;
}

TableWalkTensors initial_table_walk(const TableWalkShape& shape, uint64_t seed) {
  TableWalkTensors net(shape);
  const double bound1 = 1 / std::sqrt(static_cast<double>(2 * shape.embedding));
  const double bound2 = 1 / std::sqrt(static_cast<double>(shape.hidden));
  fill(net.embedding, seed, NetDraw::kEmbedding, 0);
  fill(net.w1, seed, NetDraw::kW1, bound1);
  fill(net.c1, seed, NetDraw::kC1, bound1);
  fill(net.w2, seed, NetDraw::kW2, bound2);
  fill(net.c2, seed, NetDraw::kC2, bound2);
  return net;
}

TableWalkStep::TableWalkStep(const TableWalkShape& shape, std::vector<int64_t> labels)
    : shape_(shape), labels_(std::move(labels)) {
  const int64_t symbols = shape.symbols, hidden = shape.hidden;
  w1_ = torch::empty({hidden, 2 * shape.embedding});
  w2_ = torch::empty({symbols, hidden});
  of_a_ = torch::empty({symbols, hidden});
  of_b_ = torch::empty({symbols, hidden});
  hidden_ = torch::empty({shape.contexts(), hidden});
  logits_ = torch::empty({shape.contexts(), symbols});
  d_logits_ = torch::empty_like(logits_);
  d_hidden_ = torch::empty_like(hidden_);
  d_of_a_ = torch::empty_like(of_a_);
  d_of_b_ = torch::empty_like(of_b_);
  for (int64_t a = 0; a < symbols; a += kPieceOfA) partial_b_.push_back(torch::empty_like(of_b_));
}

// hidden[a, b] = relu(U[a] + V[b] + c1).
void TableWalkStep::first_layer(const TableWalkTensors& net) {
  const int64_t width = shape_.embedding, symbols = shape_.symbols, count = shape_.hidden;
  torch::addmm_out(of_a_, net.c1, net.embedding, w1_.narrow(1, 0, width).t());
  torch::mm_out(of_b_, net.embedding, w1_.narrow(1, width, width).t());
  const auto* of_a = of_a_.data_ptr<float>();
  const auto* of_b = of_b_.data_ptr<float>();
  auto* hidden = hidden_.data_ptr<float>();
  train_pool().run(partial_b_.size(), [&](uint64_t piece) {
    const auto first = static_cast<int64_t>(piece) * kPieceOfA, last = std::min(first + kPieceOfA, symbols);
    for (int64_t row = first * symbols; row < last * symbols; ++row) {
      add_and_cut(of_a + row / symbols * count, of_b + row % symbols * count, count, hidden + row * count);
    }
  });
}

const torch::Tensor& TableWalkStep::logits(const TableWalkTensors& net, const std::optional<FakeQuant>& how) {
  const torch::NoGradGuard no_graph;
  if (how) {
    fake_quantize_into(net.w1, *how, w1_, "the first layer");
    fake_quantize_into(net.w2, *how, w2_, "the second layer");
  } else {
    w1_.copy_(net.w1);
    w2_.copy_(net.w2);
  }
  first_layer(net);
  torch::addmm_out(logits_, net.c2, hidden_, w2_.t());
  return logits_;
}

// d_logits = (softmax(logits) - onehot(label)) / contexts.
double TableWalkStep::softmax_gradient() {
  const int64_t contexts = shape_.contexts(), symbols = shape_.symbols;
  torch::_softmax_out(d_logits_, logits_, 1, false);
  auto* values = d_logits_.data_ptr<float>();
  double loss = 0;
  for (int64_t row = 0; row < contexts; ++row) {
    float& right = values[row * symbols + labels_[static_cast<size_t>(row)]];
    loss -= std::log(std::max(static_cast<double>(right), 1e-45));
    right -= 1;
  }
  d_logits_.mul_(1 / static_cast<double>(contexts));
  return loss / static_cast<double>(contexts);
}

// d_hidden is cut where relu was, then summed over b and over a.
void TableWalkStep::backward_relu() {
  const int64_t symbols = shape_.symbols, count = shape_.hidden;
  const auto* hidden = hidden_.data_ptr<float>();
  const auto* d_hidden = d_hidden_.data_ptr<float>();
  d_of_a_.zero_();
  auto* d_of_a = d_of_a_.data_ptr<float>();
  train_pool().run(partial_b_.size(), [&](uint64_t piece) {
    const auto first = static_cast<int64_t>(piece) * kPieceOfA, last = std::min(first + kPieceOfA, symbols);
    auto* partial = partial_b_[piece].data_ptr<float>();
    std::fill_n(partial, symbols * count, 0.0f);
    for (int64_t row = first * symbols; row < last * symbols; ++row) {
      add_uncut(hidden + row * count, d_hidden + row * count, count, d_of_a + row / symbols * count,
                partial + row % symbols * count);
    }
  });
  d_of_b_.zero_();
  for (const torch::Tensor& partial : partial_b_) d_of_b_.add_(partial);
}

double TableWalkStep::loss(const TableWalkTensors& net, const std::optional<FakeQuant>& how,
                           TableWalkTensors* gradients) {
  const torch::NoGradGuard no_graph;
  logits(net, how);
  const double loss = softmax_gradient();
  torch::mm_out(gradients->w2, d_logits_.t(), hidden_);
  torch::sum_out(gradients->c2, d_logits_, 0);
  torch::mm_out(d_hidden_, d_logits_, w2_);
  backward_relu();
  const int64_t width = shape_.embedding;
  torch::Tensor of_a = gradients->w1.narrow(1, 0, width), of_b = gradients->w1.narrow(1, width, width);
  of_a.copy_(torch::mm(d_of_a_.t(), net.embedding));
  of_b.copy_(torch::mm(d_of_b_.t(), net.embedding));
  torch::sum_out(gradients->c1, d_of_a_, 0);
  torch::mm_out(gradients->embedding, d_of_a_, w1_.narrow(1, 0, width));
  gradients->embedding.addmm_(d_of_b_, w1_.narrow(1, width, width));
  return loss;
}

Adam::Adam(int64_t parameters) : first_(torch::zeros({parameters})), second_(torch::zeros({parameters})) {}

void Adam::step(torch::Tensor& parameters, const torch::Tensor& gradients, double rate) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999;
  constexpr float kKeep1 = 0.9f, kTake1 = 1 - kKeep1, kKeep2 = 0.999f, kTake2 = 1 - kKeep2, kEpsilon = 1e-8f;
  ++steps_;
  const auto steps = static_cast<double>(steps_);
  const auto size = static_cast<float>(rate / (1 - std::pow(kBeta1, steps)));
  const auto unbias2 = static_cast<float>(1 / std::sqrt(1 - std::pow(kBeta2, steps)));
  const int64_t count = parameters.numel();
  auto* values = parameters.data_ptr<float>();
  const auto* gradient = gradients.data_ptr<float>();
  auto* first = first_.data_ptr<float>();
  auto* second = second_.data_ptr<float>();
  for (int64_t i = 0; i < count; ++i) {
    first[i] = kKeep1 * first[i] + kTake1 * gradient[i];
    second[i] = kKeep2 * second[i] + kTake2 * gradient[i] * gradient[i];
    values[i] -= size * first[i] / (std::sqrt(second[i]) * unbias2 + kEpsilon);
  }
}

}  // namespace nibble
