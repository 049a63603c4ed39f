#include "nibble/train/fake_quant.h"

#include <fmt/format.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/numerics/fake_quantize.h"
#include "nibble/train/threads.h"

namespace nibble {
namespace {

// Elements that one thread takes at a time.
constexpr uint64_t kPieceElements = 1 << 16;

// (…, rows, cols) float32 in CPU memory, contiguous, and where it goes.
struct Stack {
  const float* from = nullptr;
  float* to = nullptr;
  uint64_t matrices = 0, rows = 0, cols = 0;

  DenseView view(uint64_t matrix, uint64_t row, uint64_t count) const {
    const float* first = from + (matrix * rows + row) * cols;
    return {reinterpret_cast<const std::byte*>(first), Element::kF32, count, cols, cols * sizeof(float)};
  }
  float* out(uint64_t matrix, uint64_t row) const { return to + (matrix * rows + row) * cols; }
};

Error about(const char* what, std::string_view name, const FakeQuant& how) {
  Error error(what);
  if (!name.empty()) error.tensor(std::string(name));
  return std::move(error.value("format", how.format.name).value("rule", how.rule.rule ? how.rule.name() : "none"));
}

std::string shape_text(const torch::Tensor& tensor) {
  return fmt::format("({})", fmt::join(tensor.sizes().begin(), tensor.sizes().end(), ", "));
}

Stack stack_of(const torch::Tensor& from, const torch::Tensor& to) {
  Stack stack;
  stack.from = from.data_ptr<float>();
  stack.to = to.data_ptr<float>();
  stack.rows = static_cast<uint64_t>(from.size(-2));
  stack.cols = static_cast<uint64_t>(from.size(-1));
  if (from.numel() > 0) stack.matrices = static_cast<uint64_t>(from.numel()) / (stack.rows * stack.cols);
  return stack;
}

void check(const torch::Tensor& weight, const FakeQuant& how, std::string_view name) {
  if (weight.dim() < 2 || weight.scalar_type() != torch::kFloat32) {
    throw about("fake quantization takes float32 matrices", name, how)
        .value("shape", shape_text(weight))
        .value("type", std::string(c10::toString(weight.scalar_type())))
        .way_out("keep the weights that are trained in float32");
  }
  const auto problem =
      check_shape(how.format, static_cast<uint64_t>(weight.size(-2)), static_cast<uint64_t>(weight.size(-1)));
  if (!problem) return;
  Error error = about(problem->reason.c_str(), name, how).value("shape", shape_text(weight));
  if (!problem->legal_groups.empty()) {
    error.value("legal_groups", fmt::format("{}", fmt::join(problem->legal_groups, " ")))
        .way_out("choose a legal group size");
  }
  throw std::move(error.way_out("choose sizes of the model that are multiples of the block"));
}

[[noreturn]] void refuse(const BadValue& bad, uint64_t matrix, std::string_view name, const FakeQuant& how) {
  throw about("a weight is no number: training has diverged", name, how)
      .value("matrix", matrix)
      .value("row", bad.row)
      .value("column", bad.col)
      .value("weight", bad.value)
      .way_out("lower the learning rate, or clip gradients");
}

// Of the matrices at one leading index, of all stacks.
TensorScale shared_scale(const FakeQuantizer& fake, std::span<const Stack> stacks, uint64_t matrix,
                         std::string_view name, const FakeQuant& how) {
  std::vector<DenseView> views;
  views.reserve(stacks.size());
  for (const Stack& stack : stacks) views.push_back(stack.view(matrix, 0, stack.rows));
  BadValue bad;
  const auto scale = fake.tensor_scale(views, &bad);
  if (!scale) refuse(bad, matrix, name, how);
  if (scale->level == SecondLevel::kNone || (std::isfinite(scale->value) && scale->value > 0)) return *scale;
  throw about("the largest weight is beyond what the second-level scale can stand for", name, how)
      .value("matrix", matrix)
      .value("second_level_scale", scale->value)
      .way_out("lower the learning rate");
}

struct Piece {
  size_t stack = 0;
  uint64_t matrix = 0, row = 0, rows = 0;
};

// Whole rows of one matrix, about kPieceElements of them, cut where blocks end.
std::vector<Piece> pieces_of(std::span<const Stack> stacks, uint64_t cut_rows) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < stacks.size(); ++i) {
    const Stack& stack = stacks[i];
    if (stack.matrices == 0) continue;
    const uint64_t step = std::max(cut_rows, kPieceElements / stack.cols / cut_rows * cut_rows);
    pieces.reserve(pieces.size() + stack.matrices * (stack.rows / step + 1));
    for (uint64_t matrix = 0; matrix < stack.matrices; ++matrix) {
      for (uint64_t row = 0; row < stack.rows; row += step)
        pieces.push_back({i, matrix, row, std::min(step, stack.rows - row)});
    }
  }
  return pieces;
}

void round_stacks(std::span<const Stack> stacks, const FakeQuant& how, std::string_view name) {
  const FakeQuantizer fake({.format = how.format, .rule = how.rule, .second_level = how.second_level});
  std::vector<TensorScale> scales(stacks.front().matrices);
  if (fake.quantizer().needs_amax()) {
    train_pool().run(scales.size(), [&](uint64_t i) { scales[i] = shared_scale(fake, stacks, i, name, how); });
  }
  const std::vector<Piece> pieces = pieces_of(stacks, fake.cut_rows());
  train_pool().run(pieces.size(), [&](uint64_t i) {
    const Piece& piece = pieces[i];
    const Stack& stack = stacks[piece.stack];
    auto bad = fake.run(stack.view(piece.matrix, piece.row, piece.rows), scales[piece.matrix],
                        stack.out(piece.matrix, piece.row), stack.cols);
    if (!bad) return;
    bad->row += piece.row;
    refuse(*bad, piece.matrix, name, how);
  });
}

std::vector<torch::Tensor> rounded(const std::vector<torch::Tensor>& weights, const FakeQuant& how,
                                   std::string_view name) {
  const torch::NoGradGuard no_graph;
  std::vector<torch::Tensor> from, to;
  std::vector<Stack> stacks;
  for (const torch::Tensor& weight : weights) {
    check(weight, how, name);
    from.push_back(weight.detach().to(torch::kCPU).contiguous());
    to.push_back(torch::empty_like(from.back()));
    stacks.push_back(stack_of(from.back(), to.back()));
    if (stacks.back().matrices == stacks.front().matrices) continue;
    throw about("weights that share scales have different numbers of matrices", name, how)
        .value("shape", shape_text(weight))
        .value("first_shape", shape_text(weights.front()));
  }
  round_stacks(stacks, how, name);
  for (size_t i = 0; i < to.size(); ++i) to[i] = to[i].to(weights[i].device());
  return to;
}

// Backward of "the rounded weight": the gradient goes to the weight as it is.
struct StraightThrough : torch::autograd::Function<StraightThrough> {
  static torch::Tensor forward(torch::autograd::AutogradContext* /*context*/, const torch::Tensor& /*weight*/,
                               const torch::Tensor& rounded) {
    return rounded;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*context*/,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0], torch::Tensor()};
  }
};

}  // namespace

FakeQuant fake_quant_named(std::string_view format, std::string_view rule) {
  FakeQuant how;
  how.format = parse_writable_format(format);
  if (!rule.empty()) {
    how.rule = parse_rule(rule, how.format);
  } else if (!how.format.is_dense()) {
    how.rule = default_rule(how.format);
  }
  return how;
}

torch::Tensor fake_quantize(const torch::Tensor& weight, const FakeQuant& how, std::string_view name) {
  return fake_quantize_together({weight}, how, name).front();
}

void fake_quantize_into(const torch::Tensor& weight, const FakeQuant& how, torch::Tensor& out, std::string_view name) {
  check(weight, how, name);
  NIBBLE_CHECK(weight.is_contiguous() && out.is_contiguous() && out.sizes() == weight.sizes());
  NIBBLE_CHECK(weight.device().is_cpu() && out.device().is_cpu() && out.scalar_type() == torch::kFloat32);
  const Stack stack = stack_of(weight, out);
  round_stacks({&stack, 1}, how, name);
}

std::vector<torch::Tensor> fake_quantize_together(const std::vector<torch::Tensor>& weights, const FakeQuant& how,
                                                  std::string_view name) {
  std::vector<torch::Tensor> results;
  if (weights.empty()) return results;
  const std::vector<torch::Tensor> values = rounded(weights, how, name);
  results.reserve(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) results.push_back(StraightThrough::apply(weights[i], values[i]));
  return results;
}

}  // namespace nibble
