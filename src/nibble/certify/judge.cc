#include "nibble/certify/judge.h"

#include <algorithm>
#include <cmath>

#include "nibble/base/error.h"
#include "nibble/engine/perplexity.h"

namespace nibble {
namespace {

// The largest logits and log Σ e^logit, in float64.
struct Softmax {
  TokenScore best;
  double log_sum = 0;
  double log_p(float logit) const { return static_cast<double>(logit) - log_sum; }
};

Softmax softmax_of(std::span<const float> logits, TokenId token, const std::string& name) {
  Softmax softmax;
  softmax.best = score_token(logits, token);
  softmax.log_sum = softmax.best.nll + static_cast<double>(softmax.best.logit);
  // A NaN anywhere is in the sum, and so is an infinity.
  if (std::isfinite(softmax.log_sum)) return softmax;
  const auto broken = std::count_if(logits.begin(), logits.end(), [](float x) { return !std::isfinite(x); });
  throw Error("a model's logits are no numbers")
      .file(name)
      .value("not_finite", broken)
      .value("of", logits.size())
      .way_out("`nibble verify` finds weights and scales that are no numbers");
}

double divergence(std::span<const float> reference, const Softmax& r, std::span<const float> candidate,
                  const Softmax& c) {
  double sum = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double log_p = r.log_p(reference[i]), p = std::exp(log_p);
    if (p > 0) sum += p * (log_p - c.log_p(candidate[i]));
  }
  return std::max(sum, 0.0);  // rounding of equal ones
}

TokenId chosen(std::span<const float> logits, const Softmax& softmax, const JudgeOptions& options, uint64_t chain,
               uint64_t position) {
  if (options.sampler.temperature <= 0) return softmax.best.best;
  return *choose_token(logits, options.sampler, chain, position);
}

}  // namespace

Choice judge_choice(std::span<const float> reference, std::span<const float> candidate, TokenId token,
                    const JudgeOptions& options, uint64_t chain, uint64_t position) {
  const Softmax r = softmax_of(reference, token, options.reference_name);
  const Softmax c = softmax_of(candidate, token, options.candidate_name);
  const auto first = static_cast<size_t>(r.best.best), second = static_cast<size_t>(std::max(r.best.second, 0));
  Choice choice;
  choice.token = token;
  choice.reference = chosen(reference, r, options, chain, position);
  choice.candidate = chosen(candidate, c, options, chain, position);
  choice.second = r.best.second;
  choice.margin = reference[first] - reference[second];
  choice.candidate_margin = candidate[first] - candidate[second];
  choice.kl = static_cast<float>(divergence(reference, r, candidate, c));
  choice.reference_log_p = static_cast<float>(-r.best.nll);
  choice.candidate_log_p = static_cast<float>(-c.best.nll);
  return choice;
}

namespace {

// Answer positions are taken in pieces: logits of all of them would be the largest thing in memory.
constexpr uint64_t kPiece = 128;

struct Piece {
  const Chain* chain = nullptr;
  uint64_t index = 0;                // of the chain
  std::span<const uint64_t> chosen;  // positions in the answer
  JudgedChain* out = nullptr;
};

void judge_piece(ScoredStates* reference, ScoredStates* candidate, const Piece& piece, const JudgeOptions& options,
                 ThreadPool* pool) {
  const uint64_t prompt = piece.chain->prompt.size(), vocabulary = reference->vocabulary();
  const uint64_t from = piece.chosen.front(), count = piece.chosen.back() - from + 1;
  const std::span<const float> r = reference->logits(piece.index, prompt - 1 + from, count);
  const std::span<const float> c = candidate->logits(piece.index, prompt - 1 + from, count);
  const size_t first = piece.out->size();
  piece.out->resize(first + piece.chosen.size());
  pool->run(piece.chosen.size(), [&](uint64_t i) {
    const uint64_t position = piece.chosen[i], row = (position - from) * vocabulary;
    try {
      (*piece.out)[first + i] = judge_choice(r.subspan(row, vocabulary), c.subspan(row, vocabulary),
                                             piece.chain->answer[position], options, piece.index, prompt + position);
    } catch (Error& error) {
      error.value("chain", piece.index).value("position", position);
      throw;
    }
  });
}

}  // namespace

void check_vocabularies(uint64_t reference, uint64_t candidate, const std::string& candidate_name) {
  if (reference == candidate) return;
  throw Error("reference and candidate have different vocabularies")
      .file(candidate_name)
      .value("reference_tokens", reference)
      .value("candidate_tokens", candidate)
      .way_out("certify a candidate that was made from the reference");
}

std::vector<JudgedChain> judge_chains(ScoredStates* reference, ScoredStates* candidate,
                                      const std::vector<Chain>& chains, const JudgeOptions& options, ThreadPool* pool,
                                      const std::function<void(uint64_t)>& progress) {
  check_vocabularies(reference->vocabulary(), candidate->vocabulary(), options.candidate_name);
  std::vector<JudgedChain> judged(chains.size());
  for (size_t c = 0; c < chains.size(); ++c) {
    const std::vector<uint64_t> positions = chosen_positions(chains[c]);
    for (size_t at = 0; at < positions.size();) {
      size_t end = at + 1;
      while (end < positions.size() && positions[end] < positions[at] + kPiece) ++end;
      const Piece piece{&chains[c], c, std::span(positions).subspan(at, end - at), &judged[c]};
      judge_piece(reference, candidate, piece, options, pool);
      at = end;
    }
    if (progress) progress(c + 1);
  }
  return judged;
}

}  // namespace nibble
