// The least time in which the GPUs of a layout hand each other a layer's tokens.
//
// Links join the GPUs of a domain (Device::linked); between domains each GPU has its share of the network cards. All
// of a GPU's traffic passes its links, and what leaves the domain its card as well; both work at once, so the busier
// one decides. That is why several domains never come out quicker than one. Groups of GPUs are laid so that as few of
// them as can be are torn apart: of four groups of 6 in three domains of 8 one is, and the others wait for it.
//
//   all-reduce  of B bytes over p GPUs in m domains: reduce-scatter inside, exchange across with all cards, gather
//               inside, chunk by chunk: max(2 (p - 1) / p · B / link, 2 (m - 1) / m · B / (p / m) / card); two
//               latencies of a link, and of a card if m > 1
//   experts     dispatch and combine. A token's hidden state lies on one GPU, and every GPU of the different ranks that
//               its experts fall on needs it: those that share the experts of its own rank too. Over links all copies,
//               those that another domain hands on among them; over cards one copy for each other domain that one of
//               these ranks lies in; a latency each. The GPU that sends or, under skew, gets most decides
//   stages      one hidden state from each stage to the next, cut over TP: over links if that begins in the same
//   domain.
//               After the last one the chosen tokens' numbers, 4 bytes each, go back to the first, which embeds them
#pragma once

#include <cstdint>

#include "nibble/hardware/device.h"
#include "nibble/ledger/layout.h"
#include "nibble/models/model_spec.h"

namespace nibble {

class Exchange {
 public:
  // `rank_load`: tokens of the busiest rank's experts over the average. Several GPUs need
  // Device::has_wires().
  Exchange(const ModelSpec& spec, const Layout& layout, const Device& device, uint64_t gpus_per_machine,
           double rank_load = 1);

  // Seconds of one all-reduce of the hidden states of a TP group's tokens.
  double all_reduce(double group_tokens) const;
  // Of one layer's experts, for so many tokens of the fullest group of TP GPUs and of the whole stage, its GPUs spread
  // evenly over so many domains.
  double experts(double group_tokens, double stage_tokens, uint64_t over_domains) const;
  double experts(double group_tokens, double stage_tokens) const {
    return experts(group_tokens, stage_tokens, domains());
  }
  // From this stage to the next; 0 from the last.
  double hand_over(double group_tokens, uint64_t stage) const;
  // From the last stage to the first, before the next step can begin; 0 if they are one.
  double hand_back(double group_tokens) const;

  // How many domains the GPUs of a stage lie in.
  uint64_t domains() const { return domains_of(layout_.stage_gpus(), layout_.pp); }

 private:
  struct Wire {
    double bandwidth = 0, latency = 0;
  };
  // Of the layout's equal groups of `size` GPUs, how many domains the most scattered one lies in at least.
  uint64_t domains_of(uint64_t size, uint64_t groups) const;
  // Between GPUs of two stages, which lie one after the other.
  const Wire& wire(uint64_t from, uint64_t to) const;

  Layout layout_;
  uint64_t domain_;
  Wire link_, card_;
  double hidden_bytes_, expert_bytes_;  // of a token's state, as the layers and as the experts have it
  double chosen_;                       // experts of a token; 0: none
  double rank_load_;
};

}  // namespace nibble
