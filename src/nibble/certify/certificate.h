// What a certificate says of each candidate, from its judged chains: data for the table, JSON and the page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nibble/certify/attribution.h"
#include "nibble/certify/divergence.h"
#include "nibble/certify/statistics/curves.h"
#include "nibble/certify/statistics/horizon.h"
#include "nibble/certify/tasks/task_score.h"

namespace nibble {

// Agreement of the chains of one class of answer lengths: quarters of the chains by length, fewer where lengths are
// equal.
struct LengthClass {
  uint64_t shortest = 0, longest = 0, chains = 0;
  Curve survival;
};

// The place where a candidate first leaves a chain. What comes behind it is judged on the reference's own tokens.
struct Fork {
  uint64_t chain = 0, position = 0;  // of chosen tokens, from 0
  DivergenceKind kind = DivergenceKind::kForked;
  TokenId token = 0, reference = 0, candidate = 0;  // the chain's; what each would have chosen
  double margin = 0;                                // of the reference's two best logits
  double kl = 0;                                    // at the fork, nats
  double kl_behind = 0;                             // mean over the rest of the chain; 0 without any
  double candidate_p = 0;                           // the candidate's probability of the chain's token
  bool within_noise = false;
  // What the candidate writes from here on, its own choice first; empty: not asked for.
  std::vector<TokenId> continuation = {};
};

struct CandidateCertificate {
  std::string name, path;
  ChoiceTotals totals;
  std::vector<ChainDivergence> divergences;
  uint64_t chains = 0, whole = 0, forked = 0, stopped_early = 0, ran_on = 0;
  Curve incidence, survival;
  std::vector<LengthClass> by_length;
  std::vector<HazardBin> hazard;
  ImpliedHorizon implied;
  std::optional<uint64_t> measured;  // horizon; nullopt: more than half agree to the end
  std::string why_they_differ;       // implied and measured horizon, in words; empty where they agree within a third
  std::vector<Fork> forks;           // one a diverged chain, in order of chains
  std::optional<TaskScore> task;
  std::optional<Attribution> attribution;
  std::vector<double> expected_agreement;  // of chains that somebody else sampled; else empty
};

// Indices into `forks`, at most `count`: the widest margins first, where the reference was surest of its choice.
std::vector<size_t> widest_forks(const CandidateCertificate& candidate, size_t count);

CandidateCertificate certify_candidate(const std::vector<Chain>& chains, const std::vector<JudgedChain>& judged,
                                       std::span<const TokenId> end_tokens, double noise,
                                       const BootstrapOptions& bootstrap);

// The numbers that --gate may bound, and one of them. "horizon" is the measured one; where it was not reached, the
// longest time that was watched, which it exceeds.
const std::vector<std::string>& gate_names();
std::optional<double> gate_value(const CandidateCertificate& candidate, std::string_view name);

std::string short_name(const std::string& path);  // its last part

// All of a run.
struct Certificate {
  std::string reference, chains_from;  // path; "written by the reference", a file, a task
  std::string scheme, kv, kv_scale;
  SamplerOptions sampler;
  uint64_t chains = 0, tokens = 0, capped = 0;
  uint64_t shortest = 0, longest = 0;  // answers
  double mean_length = 0;
  BootstrapOptions bootstrap;
  std::string noise_scheme;  // empty: noise was not measured
  std::optional<Noise> noise;
  std::optional<TaskScore> reference_task;
  std::vector<CandidateCertificate> candidates;
  double seconds = 0;
};

void describe_chains(const std::vector<Chain>& chains, Certificate* certificate);

}  // namespace nibble
