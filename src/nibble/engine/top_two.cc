#include "nibble/engine/top_two.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "nibble/kernels/cpu/vector/vector_loops.h"

namespace nibble {
namespace {

constexpr size_t kBlock = 256;
constexpr float kNone = -std::numeric_limits<float>::infinity();

// One by one: for a few, and where all but one are -inf.
TopTwo plainly(std::span<const float> logits) {
  TopTwo top;
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (std::isnan(logits[i])) continue;
    if (top.best < 0 || logits[i] > logits[static_cast<size_t>(top.best)]) {
      top.second = std::exchange(top.best, id);
    } else if (top.second < 0 || logits[i] > logits[static_cast<size_t>(top.second)]) {
      top.second = id;
    }
  }
  return top;
}

}  // namespace

// Vectors find the largest of each block; only two blocks are looked through for places.
TopTwo top_two(std::span<const float> logits) {
  if (logits.size() <= kBlock) return plainly(logits);
  const size_t blocks = (logits.size() + kBlock - 1) / kBlock;
  const auto block = [&](size_t index) {
    return logits.subspan(index * kBlock, std::min(kBlock, logits.size() - index * kBlock));
  };
  std::vector<float> tops(blocks);
  for (size_t i = 0; i < blocks; ++i) tops[i] = vector_loops().largest(block(i).data(), block(i).size());
  const size_t where = static_cast<size_t>(std::max_element(tops.begin(), tops.end()) - tops.begin());
  const TopTwo inside = plainly(block(where));
  float second = inside.second < 0 ? kNone : block(where)[static_cast<size_t>(inside.second)];
  size_t other = where;
  for (size_t i = 0; i < blocks; ++i) {
    // An equal one in a block before has the lower id.
    if (i == where || tops[i] < second || (tops[i] == second && other <= i)) continue;
    second = tops[i];
    other = i;
  }
  if (second == kNone) return plainly(logits);
  const auto id = [&](size_t index, TokenId in_block) { return static_cast<TokenId>(index * kBlock) + in_block; };
  return {id(where, inside.best), id(other, other == where ? inside.second : plainly(block(other)).best)};
}

}  // namespace nibble
