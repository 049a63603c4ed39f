// Which experts a token goes to, and with what weights, by RouterKind (models/model_spec.h):
//
//   softmax, then k largest     scores = softmax(logits); divided by their sum if norm_topk_prob
//   k largest, then softmax     softmax over the chosen logits
//   sigmoid with a bias         scores = sigmoid(logits); chosen by score + correction, within the topk_group groups
//                               whose two best such sums are largest; weights are the scores, divided by their sum
//                               (+ 1e-20) if norm_topk_prob
//
// and times routed_scaling_factor. Of equal scores the lower expert is taken. Slots come by falling score.
#pragma once

#include <cstdint>
#include <vector>

#include "nibble/models/model_spec.h"

namespace nibble {

struct RoutedExpert {
  uint32_t expert = 0;
  float weight = 0;
};

// `logits` (E) is overwritten; writes experts_per_token slots (or `top_k` if not 0). A NaN chooses nothing special: it
// loses every comparison, and its weight is NaN. `correction` empty: zeros.
void choose_experts(const ModelSpec& spec, uint64_t top_k, const std::vector<float>& correction, float* logits,
                    RoutedExpert* slots);

}  // namespace nibble
