#include "nibble/engine/top_two.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "nibble/base/rng.h"

namespace nibble {
namespace {

// By sorting: larger ones first, of equal ones the lower id.
TopTwo by_sorting(const std::vector<float>& logits) {
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::erase_if(ids, [&](TokenId id) { return std::isnan(logits[static_cast<size_t>(id)]); });
  std::stable_sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  return {ids.empty() ? -1 : ids[0], ids.size() < 2 ? -1 : ids[1]};
}

void expect_as_sorted(const std::vector<float>& logits) {
  const TopTwo got = top_two(logits), wanted = by_sorting(logits);
  EXPECT_EQ(got.best, wanted.best) << logits.size();
  EXPECT_EQ(got.second, wanted.second) << logits.size();
}

TEST(TopTwo, as_sorted_whatever_the_size_and_however_many_are_equal) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const uint64_t n = 1 + random_bits(seed, 0) % 1500, levels = 1 + random_bits(seed, 1) % 40;
    std::vector<float> logits(n);
    for (uint64_t i = 0; i < n; ++i) logits[i] = static_cast<float>(random_bits(seed, 2 + i) % levels);
    expect_as_sorted(logits);
    for (uint64_t i = 0; i < n; i += 3) logits[i] = std::nanf("");
    expect_as_sorted(logits);
  }
}

TEST(TopTwo, infinities_and_nothing) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> logits(1000, -kInfinity);
  expect_as_sorted(logits);
  logits[700] = 1;
  expect_as_sorted(logits);
  logits[3] = kInfinity;
  expect_as_sorted(logits);
  expect_as_sorted(std::vector<float>(600, std::nanf("")));
  expect_as_sorted({});
}

}  // namespace
}  // namespace nibble
