// The least time that a decoding step can take under a layout, from what its fullest GPU must read and compute.
//
//   read      weights that are not experts once; of the experts those that the tokens of their copy touch
//             (ledger/routing.h), on the rank that has most of them; each sequence's cache; over the memory's rate
//   compute   operations of the tokens over the peak of the scheme's arithmetic; a step takes the longer of the two
//   exchange  between GPUs (exchange.h): two all-reduces a layer over TP, or one and the experts' exchange over EP; one
//             hidden state from stage to stage, pp - 1 times, and the chosen tokens back to the first stage, without
//             which no sequence takes its next step. A prompt ends with the last stage
//
// The experts have one copy a stage if they are dealt out (EP); with EP 1 every one of the dp groups has its own, which
// only the group's tokens meet.
//
// Stages follow one another: a token's time is their sum. Tokens a second count with stages that work at once: B
// sequences in M = min(B, pp) parts of b = ceil(B / M) give B / max(time of b, M · slowest stage's time of b), or B /
// time of B in one part if that is more.
#pragma once

#include <cstdint>

#include "nibble/hardware/device.h"
#include "nibble/ledger/layout.h"
#include "nibble/ledger/routing.h"
#include "nibble/ledger/weight_groups.h"
#include "nibble/plan/exchange.h"
#include "nibble/plan/request.h"
#include "nibble/plan/subject.h"

namespace nibble {

// What one GPU of each stage holds and reads, summed once for a layout; steps of any batch and context follow.
struct StageLoad {
  uint64_t first = 0, last = 0;  // layers
  double fixed_bytes = 0;        // read whatever the batch: no experts, no embedding, no MTP
  double expert_bytes = 0;       // all experts that the GPU holds
  double fixed_flops = 0;        // one token, without the head
  double head_bytes = 0;         // of fixed_bytes
  double head_flops = 0;         // one token
  double expert_flops = 0;       // one token's top-k, all GPUs of a copy of the experts together
  uint64_t moe_layers = 0, tp_reductions = 0;
  double mtp_bytes = 0, mtp_expert_bytes = 0;  // the drafting layers' share, read once a drafted token
};

struct StepTime {
  double read = 0, compute = 0, exchange = 0;  // seconds, summed over stages
  double slowest_stage = 0;
  double weight_bytes = 0, kv_bytes = 0;  // of the fullest GPU, summed over stages
  double distinct_experts = 0;            // of one layer
  double floor = 0;                       // sum over stages of max(read, compute)
  double total() const { return floor + exchange; }
};

class StepModel {
 public:
  // `flops`: peak of the arithmetic on the experts; other matrices use the same.
  StepModel(const Subject& subject, const WeightGroups& weights, const Layout& layout, const Device& device,
            uint64_t gpus_per_machine, double flops, double skew);

  // `sequences` in all, each with `context` tokens before, `tokens` new ones each (1, or 1 + drafts).
  StepTime step(uint64_t sequences, uint64_t context, uint64_t kv_element_bytes, uint64_t tokens = 1) const;

  // The most that so many sequences get, all stages at work.
  double tokens_per_second(uint64_t sequences, uint64_t context, uint64_t kv_element_bytes) const;

  // A prompt of `tokens` tokens of one sequence, all stages one after another.
  StepTime prefill(uint64_t tokens) const;

  // Reading what drafts one token of each sequence: one step of the MTP layers, their cache, the head; 0 if the model
  // has none.
  double draft_read(uint64_t sequences, uint64_t context, uint64_t kv_element_bytes) const;

  // Tokens that meet one copy of the experts, of so many in all.
  double pooled(uint64_t sequences, uint64_t tokens) const;
  const Layout& layout() const { return layout_; }

 private:
  void add_group(const WeightGroup& group, bool tied);
  void add_work(double weights, double kv, double flops, StepTime* time) const;
  void add_exchange(size_t stage, double group_tokens, double stage_tokens, StepTime* time) const;

  const Subject* subject_;
  Layout layout_;
  const Device* device_;
  double flops_;
  std::optional<Routing> routing_;
  double rank_load_ = 1;  // tokens of the busiest rank's experts over the average
  Exchange exchange_;
  std::vector<StageLoad> stages_;
};

}  // namespace nibble
