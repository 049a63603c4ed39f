// The training of one model: weights, gradients, steps. Everything of the framework is behind it.
//
// A step is a pure function of the state and its number: data comes by number (train/data), nothing is drawn. The same
// build on the same processor with the same number of threads gives the same bits, however often the run was stopped.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nibble/train/data/train_data.h"
#include "nibble/train/loop/config.h"
#include "nibble/train/loop/rollouts.h"
#include "nibble/train/loop/state.h"
#include "nibble/train/model/trained_tensors.h"

namespace nibble {

struct StepReport {
  uint64_t step = 0;  // that was trained, from 0
  double loss = 0;    // nats a label; of distillation the divergence from the teacher
  double balance = 0;
  double gradient_norm = 0;  // before clipping
  double learning_rate = 0;
  double seconds = 0;
  // Of a policy gradient: mean reward, share of chains without a wrong choice; how far the trainer's log-probability of
  // a choice lies from the engine's that drew it, mean and largest.
  double reward = 0, whole = 0, log_prob_mean_gap = 0, log_prob_largest_gap = 0;
};

class Trainer {
 public:
  // `tensors` are where training starts, and hold what pull() brings back. `teacher`: of kDistill, else null. All must
  // outlive the trainer. Error for a device that is not there.
  Trainer(const TrainConfig& config, TrainedTensors* tensors, const TrainedTensors* teacher, const TrainData& data);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  uint64_t step() const;  // the next one
  StepReport train_step();
  // A step of kReinforce: of each choice min(ratio · advantage, clipped ratio · advantage) is raised, ratio its chance
  // now over that when it was drawn; the mean over the choices.
  StepReport policy_step(const Rollouts& rollouts);

  // Mean loss on held-out sequences, the weights as they are exported.
  double held_out_loss(uint64_t sequences) const;

  // Masters into the tensors; with the optimizer's state, and back.
  void pull();
  TrainState state() const;
  void restore(const TrainState& state);

  // The weights as they are exported, in the order of the tensors' list: what must be served, and what the passes
  // multiply (without `during_training` only those of this and the next function, and of the held-out loss).
  std::vector<std::vector<float>> seen_values() const;
  // Logits (length, V) of one sequence, by these weights.
  std::vector<float> logits(const std::vector<TokenId>& tokens) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace nibble
