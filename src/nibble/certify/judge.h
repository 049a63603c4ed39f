// A candidate's choices over chains beside the reference's, position by position, from one teacher-forced pass of each.
//
// A choice is what the sampler makes of the logits: the largest (ties: the lowest id), or for sampled chains the argmax
// of log p + Gumbel noise of (seed, chain, position, token), the same noise for both models.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nibble/certify/chain.h"
#include "nibble/engine/sampler.h"
#include "nibble/engine/score.h"

namespace nibble {

struct Choice {
  TokenId token = 0;                               // the chain's
  TokenId reference = 0, candidate = 0;            // what each would have chosen
  TokenId second = 0;                              // of the reference's logits
  float margin = 0;                                // the reference's largest logit less its second
  float candidate_margin = 0;                      // the candidate's logits of the same two tokens, one less the other
  float kl = 0;                                    // KL(reference || candidate) of softmax(logits), nats
  float reference_log_p = 0, candidate_log_p = 0;  // of the chain's token, nats, of softmax(logits)
};

using JudgedChain = std::vector<Choice>;  // one for each chosen position of the chain

struct JudgeOptions {
  SamplerOptions sampler;
  std::string reference_name, candidate_name;
};

// The choices at one position. Error for logits that are not numbers, naming the model.
Choice judge_choice(std::span<const float> reference, std::span<const float> candidate, TokenId token,
                    const JudgeOptions& options, uint64_t chain, uint64_t position);

// Error naming both if they differ.
void check_vocabularies(uint64_t reference, uint64_t candidate, const std::string& candidate_name);

// Both states were made from read_tokens(chains). Error for different vocabularies, and as judge_choice(), with chain
// and position. `progress` hears chains that are done. Work is shared among the pool's threads.
std::vector<JudgedChain> judge_chains(ScoredStates* reference, ScoredStates* candidate,
                                      const std::vector<Chain>& chains, const JudgeOptions& options, ThreadPool* pool,
                                      const std::function<void(uint64_t done)>& progress = {});

}  // namespace nibble
