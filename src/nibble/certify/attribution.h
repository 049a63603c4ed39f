// Which weights a candidate's first divergences come from (attribute.h finds it): data for the table, JSON and the
// page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nibble/models/role.h"

namespace nibble {

// A group of weights: those of one role in one layer.
struct WeightPlace {
  std::optional<uint64_t> layer;  // none: embedding, final norm, head
  Role role = Role::kUnknown;
};
std::string place_name(const WeightPlace& place);  // "layer 3, routed_expert"; "head"

// What taking one group from the reference changes. Means are over the places that were tried.
struct AttributedGroup {
  WeightPlace place;
  uint64_t tensors = 0;    // of the candidate's checkpoint
  uint64_t healed = 0;     // places where the choice is the reference's again
  double margin_gain = 0;  // by how much the reference's token gains on the one that the candidate chose, logits
  double kl_after = 0;     // KL(reference || candidate with the group put back), nats
};

struct Attribution {
  uint64_t divergences = 0;   // the candidate's first ones, one a chain that it leaves
  uint64_t left_out = 0;      // of them: the reference itself chooses another token there, so nothing can heal it
  uint64_t of = 0, seed = 0;  // places that were tried, drawn from the others without replacement
  double kl_before = 0;       // mean over them, nats
  std::vector<AttributedGroup> groups;  // most healed first, then least KL
  std::vector<WeightPlace> same;        // not tried: both checkpoints have the same weights
  // What it cost: tokens of all prefixes together, sweeps over the layers, layers that those tokens went through.
  uint64_t tokens = 0, layers = 0, sweeps = 0, layer_passes = 0;
  double seconds = 0;
};

// "64 of 190 first divergences (drawn with seed 0)", and so on: what the ranking rests on.
std::string attribution_basis(const Attribution& attribution);
// "3 sweeps, 84 layer passes over 2,900 tokens (2.8 whole passes), 12.3 s"
std::string attribution_cost(const Attribution& attribution);
// The groups that heal the most, named; or that there was nothing to heal, or nothing that heals.
std::string attribution_verdict(const Attribution& attribution);

}  // namespace nibble
