// Finds the weights that a candidate's first divergences come from: one group of them at a time, those of one role in
// one layer, is taken from the reference, and the candidate chooses again at each place. What comes out has the bits of
// a checkpoint in which the group was put back.
//
// Both models are streamed layer by layer. A group of layer L changes nothing before L: the candidate's states up to
// there are shared, and the group's own states go on from L. As many groups are under way at a time as memory is given
// for; the others are taken in further sweeps, each from the layer at which the one before stopped taking groups. In
// memory are two layers, the candidate's and the reference's; the candidate's states; those of each group under way.
#pragma once

#include <functional>
#include <span>

#include "nibble/certify/attribution.h"
#include "nibble/certify/certificate.h"
#include "nibble/certify/chain.h"
#include "nibble/certify/judge.h"
#include "nibble/engine/open_model.h"
#include "nibble/engine/score.h"

namespace nibble {

struct AttributionOptions {
  uint64_t most_places = 64;
  uint64_t seed = 0;
  uint64_t state_bytes = 0;  // of all states together; at least one group is under way. 0: no limit
};

// Everything must outlive the call.
struct AttributionRequest {
  const OpenedModel* reference = nullptr;
  const OpenedModel* candidate = nullptr;
  EngineOptions reference_options, candidate_options;
  std::span<const Chain> chains;
  std::span<const Fork> forks;  // of this candidate
  JudgeOptions judge;
  AttributionOptions options;
};

struct AttributionProgress {
  uint64_t sweep = 0, layer = 0, layers = 0, groups = 0;  // groups: under way
};

// `states` are the reference's, made from read_tokens(chains). The forks must be those of a pass with the same options:
// an engine whose results depended on how sequences are batched would be found out here, and abort.
Attribution attribute(const AttributionRequest& request, ScoredStates* states, ThreadPool* pool,
                      const std::function<void(const AttributionProgress&)>& progress = {});

}  // namespace nibble
