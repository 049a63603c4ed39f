// The two largest of a model's logits.
#pragma once

#include <span>

#include "nibble/tokenizer/tokenizer.h"

namespace nibble {

// Ids; of equal logits the lower one. NaN is left out; -1: there is no such number.
struct TopTwo {
  TokenId best = -1, second = -1;
};

TopTwo top_two(std::span<const float> logits);

}  // namespace nibble
