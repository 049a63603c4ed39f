#include "nibble/engine/layers/router.h"

#include <algorithm>
#include <limits>

#include "nibble/base/check.h"
#include "nibble/kernels/cpu/vector/vector_loops.h"

namespace nibble {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// The k largest of `scores` by falling score, the lower index first; each is taken out. NaN loses.
void take_largest(std::vector<float>* scores, uint64_t k, RoutedExpert* slots) {
  std::vector<bool> taken(scores->size());
  for (uint64_t s = 0; s < k; ++s) {
    size_t best = scores->size();
    for (size_t e = 0; e < scores->size(); ++e) {
      if (taken[e]) continue;
      if (best == scores->size() || (*scores)[e] > (*scores)[best] ||
          ((*scores)[best] != (*scores)[best] && (*scores)[e] == (*scores)[e])) {
        best = e;
      }
    }
    taken[best] = true;
    slots[s].expert = static_cast<uint32_t>(best);
  }
}

// Experts outside the best groups lose: their scores become 0, as in the reference (sigmoids with a correction may lie
// below).
void keep_best_groups(const ModelSpec& spec, std::vector<float>* scores) {
  if (spec.n_group <= 1 || spec.topk_group >= spec.n_group) return;
  const size_t size = scores->size() / spec.n_group;
  NIBBLE_CHECK(size != 0);  // families refuse groups that do not divide the experts
  std::vector<float> sums(spec.n_group);
  for (size_t g = 0; g < spec.n_group; ++g) {
    float first = kNone, second = kNone;
    for (size_t i = 0; i < size; ++i) {
      const float score = (*scores)[g * size + i];
      if (score > first) {
        second = first;
        first = score;
      } else if (score > second) {
        second = score;
      }
    }
    sums[g] = first + second;
  }
  std::vector<RoutedExpert> best(spec.topk_group);
  take_largest(&sums, spec.topk_group, best.data());
  std::vector<bool> kept(spec.n_group);
  for (const RoutedExpert& group : best) kept[group.expert] = true;
  for (size_t e = 0; e < scores->size(); ++e) {
    if (!kept[e / size]) (*scores)[e] = 0;
  }
}

void divide_by_sum(uint64_t k, float extra, RoutedExpert* slots) {
  float sum = 0;
  for (uint64_t s = 0; s < k; ++s) sum += slots[s].weight;
  for (uint64_t s = 0; s < k; ++s) slots[s].weight /= sum + extra;
}

}  // namespace

void choose_experts(const ModelSpec& spec, uint64_t top_k, const std::vector<float>& correction, float* logits,
                    RoutedExpert* slots) {
  const VectorLoops& loops = vector_loops();
  const uint64_t k = top_k != 0 ? top_k : spec.experts_per_token;
  const bool sigmoid = spec.router == RouterKind::kSigmoidBias;
  if (sigmoid) loops.sigmoid(logits, spec.experts);
  if (spec.router == RouterKind::kSoftmaxTopK) loops.softmax(logits, spec.experts);
  std::vector<float> scores(logits, logits + spec.experts);
  if (!correction.empty()) loops.add(scores.data(), correction.data(), spec.experts);
  if (sigmoid) keep_best_groups(spec, &scores);
  take_largest(&scores, k, slots);
  for (uint64_t s = 0; s < k; ++s) slots[s].weight = logits[slots[s].expert];
  if (spec.router == RouterKind::kTopKSoftmax) {
    std::vector<float> chosen(k);
    for (uint64_t s = 0; s < k; ++s) chosen[s] = slots[s].weight;
    loops.softmax(chosen.data(), k);
    for (uint64_t s = 0; s < k; ++s) slots[s].weight = chosen[s];
  } else if (spec.norm_topk_prob) {
    divide_by_sum(k, sigmoid ? 1e-20F : 0.0F, slots);
  }
  const auto factor = static_cast<float>(spec.routed_scaling_factor);
  for (uint64_t s = 0; s < k; ++s) slots[s].weight *= factor;
}

}  // namespace nibble
