#include "nibble/certify/judge.h"

#include <algorithm>
#include <cmath>

#include "nibble/base/error.h"
#include "nibble/engine/top_two.h"
#include "nibble/kernels/cpu/vector/vector_loops.h"

namespace nibble {
namespace {

// Of one row of logits.
struct Softmax {
  TopTwo top;
  double log_sum = 0;  // log Σ e^logit
  double log_p(float logit) const { return static_cast<double>(logit) - log_sum; }
};

float largest_of(std::span<const float> logits, const TopTwo& top) {
  return logits[static_cast<size_t>(std::max(top.best, 0))];
}

// A NaN anywhere is in the sum, and so is an infinity.
void check_finite(double log_sum, std::span<const float> logits, const std::string& name) {
  if (std::isfinite(log_sum)) return;
  const auto broken = std::count_if(logits.begin(), logits.end(), [](float x) { return !std::isfinite(x); });
  throw Error("a model's logits are no numbers")
      .file(name)
      .value("not_finite", broken)
      .value("of", logits.size())
      .way_out("`nibble verify` finds weights and scales that are no numbers");
}

TokenId chosen(std::span<const float> logits, const Softmax& softmax, const JudgeOptions& options, uint64_t chain,
               uint64_t position) {
  if (options.sampler.temperature <= 0) return softmax.top.best;
  return *choose_token(logits, options.sampler, chain, position);
}

}  // namespace

Choice judge_choice(std::span<const float> reference, std::span<const float> candidate, TokenId token,
                    const JudgeOptions& options, uint64_t chain, uint64_t position) {
  Softmax r{.top = top_two(reference)}, c{.top = top_two(candidate)};
  const float top_r = largest_of(reference, r.top), top_c = largest_of(candidate, c.top);
  const SoftmaxSums sums =
      vector_loops().softmax_sums(reference.data(), top_r, candidate.data(), top_c, reference.size());
  r.log_sum = static_cast<double>(top_r) + std::log(sums.a);
  c.log_sum = static_cast<double>(top_c) + std::log(sums.b);
  check_finite(r.log_sum, reference, options.reference_name);
  check_finite(c.log_sum, candidate, options.candidate_name);
  const auto at = static_cast<size_t>(token), first = static_cast<size_t>(r.top.best);
  const auto second = static_cast<size_t>(std::max(r.top.second, 0));
  Choice choice;
  choice.token = token;
  choice.reference = chosen(reference, r, options, chain, position);
  choice.candidate = chosen(candidate, c, options, chain, position);
  choice.second = r.top.second;
  choice.margin = reference[first] - reference[second];
  choice.candidate_margin = candidate[first] - candidate[second];
  // Rounding may leave equal ones a little below 0.
  choice.kl = static_cast<float>(std::max(sums.apart / sums.a - (r.log_sum - c.log_sum), 0.0));
  choice.reference_log_p = static_cast<float>(r.log_p(reference[at]));
  choice.candidate_log_p = static_cast<float>(c.log_p(candidate[at]));
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
