// The network of the table-walk experiment: two tokens a and b in, logits of the next one out.
//
//   x = [E[a]; E[b]]        E (V, D) embeddings
//   h = relu(W1 x + c1)     W1 (I, 2 D)
//   z = W2 h + c2           W2 (V, I)
//   loss = mean over all V · V contexts of -log softmax(z)[label]
//
// Gradients are written out rather than recorded, since every step sees every context: W1 x is U[a] + V[b] with U and
// V of V rows each, so that the first layer's products, forward and backward, shrink from V · V rows to V. Autograd on
// the plain form takes a step's time six times over; a test holds both to the same gradients.
//
// All tensors are float32 on the CPU. Everything follows from the seed by our own generator, so that no libtorch's
// random numbers matter; sums have the order that the BLAS gives them on this machine with this number of threads.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "nibble/train/fake_quant.h"

namespace nibble {

struct TableWalkShape {
  int64_t symbols = 64, embedding = 32, hidden = 224;  // V, D, I

  int64_t contexts() const { return symbols * symbols; }
  int64_t parameters() const;
};

// Views of one run of floats, parameters or their gradients.
struct TableWalkTensors {
  explicit TableWalkTensors(const TableWalkShape& net_shape);
  TableWalkTensors clone() const;

  TableWalkShape shape;
  torch::Tensor all;                        // (parameters)
  torch::Tensor embedding, w1, c1, w2, c2;  // views
};

// Embeddings from the standard normal distribution, each layer's weights and biases uniform within 1 / sqrt(inputs).
TableWalkTensors initial_table_walk(const TableWalkShape& shape, uint64_t seed);

// One at a time; keeps the memory of a step.
class TableWalkStep {
 public:
  // labels[a · V + b]: what is right behind a, b.
  TableWalkStep(const TableWalkShape& shape, std::vector<int64_t> labels);

  // Logits of all contexts, (V · V, V), row a · V + b; both layers' weights rounded first, if `how` says so. The tensor
  // is this object's and holds until the next call.
  const torch::Tensor& logits(const TableWalkTensors& net, const std::optional<FakeQuant>& how);
  // Fills `gradients`, straight through the rounding, and returns the loss.
  double loss(const TableWalkTensors& net, const std::optional<FakeQuant>& how, TableWalkTensors* gradients);

 private:
  void first_layer(const TableWalkTensors& net);
  double softmax_gradient();
  void backward_relu();

  TableWalkShape shape_;
  std::vector<int64_t> labels_;
  torch::Tensor w1_, w2_;                 // as they are used: rounded or not
  torch::Tensor of_a_, of_b_;             // U + c1, V: (V, I)
  torch::Tensor hidden_, logits_;         // (V · V, I), (V · V, V)
  torch::Tensor d_logits_, d_hidden_;     // their gradients
  torch::Tensor d_of_a_, d_of_b_;         // (V, I)
  std::vector<torch::Tensor> partial_b_;  // sums of d_hidden over a, one a piece of work
};

// Adam (betas 0.9 and 0.999, epsilon 1e-8, no decay), in one pass over all parameters.
class Adam {
 public:
  explicit Adam(int64_t parameters);
  void step(torch::Tensor& parameters, const torch::Tensor& gradients, double rate);

 private:
  torch::Tensor first_, second_;  // moments
  int64_t steps_ = 0;
};

}  // namespace nibble
