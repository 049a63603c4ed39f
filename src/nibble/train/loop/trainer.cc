#include "nibble/train/loop/trainer.h"

#include <torch/cuda.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/base/stopwatch.h"
#include "nibble/train/loop/optimizer.h"
#include "nibble/train/loop/schedule.h"
#include "nibble/train/model/decoder.h"
#include "nibble/train/model/weight_values.h"

namespace nibble {
namespace {

using torch::Tensor;

torch::Device device_of(const std::string& name) {
  if (name != "cuda") return torch::kCPU;
  if (torch::cuda::is_available()) return torch::kCUDA;
  throw Error("there is no CUDA device, or libtorch was built without CUDA")
      .value("device", name)
      .way_out(R"(set "device": "cpu")");
}

Tensor ids_tensor(const std::vector<TokenId>& ids, int64_t rows, torch::Device device) {
  Tensor tensor = torch::empty({static_cast<int64_t>(ids.size())}, torch::kInt64);
  std::copy(ids.begin(), ids.end(), tensor.data_ptr<int64_t>());
  return tensor.view({rows, -1}).to(device);
}

std::vector<float> floats_of(const Tensor& tensor) {
  const Tensor here = tensor.detach().to(torch::kCPU).contiguous();
  return {here.data_ptr<float>(), here.data_ptr<float>() + here.numel()};
}

Tensor floats_tensor(const std::vector<float>& values) {
  Tensor tensor = torch::empty({static_cast<int64_t>(values.size())}, torch::kFloat32);
  std::copy(values.begin(), values.end(), tensor.data_ptr<float>());
  return tensor;
}

void fill(const Tensor& tensor, const std::vector<float>& values) {
  const at::NoGradGuard no_grad;
  NIBBLE_CHECK(static_cast<size_t>(tensor.numel()) == values.size());
  tensor.copy_(floats_tensor(values).view(tensor.sizes()));
}

// The student's and the teacher's view of the same places: Σ p_teacher · (log p_teacher - log p_student), a mean over
// the places that are asked for, times the squared temperature.
Tensor divergence(const Tensor& student, const Tensor& teacher, const Tensor& labels, double temperature) {
  const Tensor asked = labels.ge(0).nonzero().squeeze(1);
  const Tensor ours = torch::log_softmax(student.index_select(0, asked) / temperature, 1);
  const Tensor wanted = torch::log_softmax(teacher.index_select(0, asked) / temperature, 1);
  return (wanted.exp() * (wanted - ours)).sum(1).mean() * (temperature * temperature);
}

}  // namespace

struct Trainer::Parts {
  Parts(const TrainConfig& of, TrainedTensors* to, const TrainedTensors* teaching, const TrainData& from)
      : config(&of),
        tensors(to),
        data(&from),
        device(device_of(of.device)),
        decoder(*to, device),
        values(*to, of.rounding ? &*of.rounding : nullptr),
        masters(decoder.parameters(*to, of.trained)),
        optimizer(masters, of.optimizer) {
    if (of.rounding) round_activations(*to, *of.rounding, &decoder);
    if (teaching == nullptr) return;
    teacher.emplace(*teaching, device);
    const WeightValues exact(*teaching, nullptr);
    const at::NoGradGuard no_grad;
    teacher_weights = exact.of(teacher->parameters(*teaching, {}));
  }

  // Loss of a batch, and its balance loss where the model has experts.
  std::pair<Tensor, Tensor> losses(const SequenceBatch& batch, bool packed) const {
    const auto rows = static_cast<int64_t>(batch.rows);
    const Tensor tokens = ids_tensor(batch.tokens, rows, device);
    const Tensor labels = ids_tensor(batch.labels, rows, device).reshape({-1});
    const DecoderOutput out = decoder.run(values.of(masters, packed), tokens);
    if (!teacher) {
      return {at::cross_entropy_loss(out.logits, labels, {}, at::Reduction::Mean, /*ignore_index=*/-1), out.balance};
    }
    Tensor wanted;
    {
      const at::NoGradGuard no_grad;
      wanted = teacher->run(teacher_weights, tokens).logits;
    }
    return {divergence(out.logits, wanted, labels, config->temperature), out.balance};
  }

  // Gradients of the loss, a step of the optimizer.
  StepReport update(const Tensor& loss, const Tensor& balance) {
    StepReport report;
    report.step = step;
    report.learning_rate = learning_rate(config->optimizer, step, config->steps);
    report.loss = loss.item<double>();
    if (balance.defined()) report.balance = balance.item<double>();
    const bool balances = balance.defined() && config->balance_loss > 0;
    (balances ? loss + balance * config->balance_loss : loss).backward();
    report.gradient_norm = optimizer.step(report.learning_rate);
    ++step;
    return report;
  }

  const TrainConfig* config;
  TrainedTensors* tensors;
  const TrainData* data;
  torch::Device device;
  Decoder decoder;
  WeightValues values;
  std::vector<Tensor> masters;
  AdamW optimizer;
  std::optional<Decoder> teacher;
  std::vector<Tensor> teacher_weights;
  uint64_t step = 0;
};

Trainer::Trainer(const TrainConfig& config, TrainedTensors* tensors, const TrainedTensors* teacher,
                 const TrainData& data)
    : parts_(std::make_unique<Parts>(config, tensors, teacher, data)) {
  const auto learns = [](const Tensor& weight) { return weight.requires_grad(); };
  if (std::ranges::any_of(parts_->masters, learns)) return;
  throw Error("no weight of the model has a role that is trained").way_out("leave `trained` out to train all");
}

Trainer::~Trainer() = default;

uint64_t Trainer::step() const { return parts_->step; }

StepReport Trainer::train_step() {
  Parts& parts = *parts_;
  const Stopwatch watch;
  const uint64_t rows = parts.config->batch;
  const auto [loss, balance] = parts.losses(parts.data->batch(parts.step * rows, rows), false);
  StepReport report = parts.update(loss, balance);
  report.seconds = watch.seconds();
  return report;
}

StepReport Trainer::policy_step(const Rollouts& rollouts) {
  Parts& parts = *parts_;
  const Stopwatch watch;
  const auto rows = static_cast<int64_t>(rollouts.batch.rows);
  const Tensor tokens = ids_tensor(rollouts.batch.tokens, rows, parts.device);
  const Tensor labels = ids_tensor(rollouts.batch.labels, rows, parts.device).reshape({-1});
  const Tensor asked = labels.ge(0).nonzero().squeeze(1);
  const auto of_asked = [&](const std::vector<float>& values) {
    return floats_tensor(values).to(parts.device).index_select(0, asked);
  };
  const DecoderOutput out = parts.decoder.run(parts.values.of(parts.masters), tokens);
  const Tensor all = torch::log_softmax(out.logits.index_select(0, asked) / parts.config->temperature, 1);
  const Tensor ours = all.gather(1, labels.index_select(0, asked).unsqueeze(1)).squeeze(1);
  const Tensor drawn = of_asked(rollouts.log_probs), advantages = of_asked(rollouts.advantages);
  const Tensor ratio = (ours - drawn).exp();
  const double clip = parts.config->ratio_clip;
  const Tensor loss = -torch::minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages).mean();
  const Tensor gap = (ours - drawn).detach().abs();
  StepReport report = parts.update(loss, out.balance);
  report.reward = rollouts.reward;
  report.whole = rollouts.whole;
  report.log_prob_mean_gap = gap.mean().item<double>();
  report.log_prob_largest_gap = gap.max().item<double>();
  report.seconds = watch.seconds();
  return report;
}

double Trainer::held_out_loss(uint64_t sequences) const {
  const at::NoGradGuard no_grad;
  const uint64_t count = std::min(sequences, parts_->data->held_out());
  double sum = 0;
  for (uint64_t first = 0; first < count;) {
    const uint64_t rows = std::min(parts_->config->batch, count - first);
    sum += parts_->losses(parts_->data->held_out_batch(first, rows), true).first.item<double>() *
           static_cast<double>(rows);
    first += rows;
  }
  return sum / static_cast<double>(count);
}

void Trainer::pull() {
  for (size_t i = 0; i < parts_->masters.size(); ++i) {
    parts_->tensors->list()[i].values = floats_of(parts_->masters[i]);
  }
}

TrainState Trainer::state() const {
  TrainState state;
  state.step = parts_->step;
  state.updates = parts_->optimizer.steps();
  state.fingerprint = config_fingerprint(*parts_->config);
  for (size_t i = 0; i < parts_->masters.size(); ++i) {
    const Tensor first = parts_->optimizer.first_moments()[i], second = parts_->optimizer.second_moments()[i];
    state.masters.push_back(floats_of(parts_->masters[i]));
    state.first.push_back(first.defined() ? floats_of(first) : std::vector<float>{});
    state.second.push_back(second.defined() ? floats_of(second) : std::vector<float>{});
  }
  return state;
}

void Trainer::restore(const TrainState& state) {
  for (size_t i = 0; i < parts_->masters.size(); ++i) {
    fill(parts_->masters[i], state.masters[i]);
    if (!parts_->masters[i].requires_grad()) continue;
    fill(parts_->optimizer.first_moments()[i], state.first[i]);
    fill(parts_->optimizer.second_moments()[i], state.second[i]);
  }
  parts_->optimizer.set_steps(state.updates);
  parts_->step = state.step;
}

std::vector<std::vector<float>> Trainer::seen_values() const {
  const at::NoGradGuard no_grad;
  std::vector<std::vector<float>> all;
  for (const Tensor& seen : parts_->values.of(parts_->masters, true)) all.push_back(floats_of(seen));
  return all;
}

std::vector<float> Trainer::logits(const std::vector<TokenId>& tokens) const {
  const at::NoGradGuard no_grad;
  const Tensor ids = ids_tensor(tokens, 1, parts_->device);
  return floats_of(parts_->decoder.run(parts_->values.of(parts_->masters, true), ids).logits);
}

}  // namespace nibble
