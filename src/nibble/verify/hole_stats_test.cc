#include "nibble/verify/hole_stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "nibble/base/rng.h"

namespace nibble {
namespace {

TEST(FewKeys, CountsUpToThreeInAnyOrder) {
  std::vector<uint64_t> keys = {5, 5, 0, 9, 5, 7};
  std::ranges::sort(keys);
  do {
    FewKeys few, other;
    for (size_t i = 0; i < keys.size(); ++i) (i < 3 ? few : other).add(keys[i]);
    few.add(other);
    EXPECT_EQ(few.count(), 3u);
  } while (std::ranges::next_permutation(keys).found);
  FewKeys two;
  for (const uint64_t key : {0u, 1u, 0u, 1u}) two.add(key);
  EXPECT_EQ(two.count(), 2u);
}

// Every run of 128 bytes is found, at whatever place; of shorter ones at most as much as there is.
TEST(ZeroRuns, AgainstLookingAtEveryByte) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<std::byte> bytes(3000, std::byte{1});
    for (uint64_t r = 0; r < 4; ++r) {
      const uint64_t begin = random_bits(seed, 2 * r) % bytes.size(), length = random_bits(seed, 2 * r + 1) % 400;
      for (uint64_t i = begin; i < std::min(begin + length, bytes.size()); ++i) bytes[i] = std::byte{0};
    }
    uint64_t longest = 0, place = 0, all = 0;
    for (uint64_t i = 0; i < bytes.size();) {
      uint64_t end = i;
      while (end < bytes.size() && bytes[end] == std::byte{0}) ++end;
      if (end - i > longest) longest = end - i, place = i;
      if (end - i >= kShortestRun) all += end - i;
      i = std::max(end, i + 1);
    }
    HoleStats stats;
    add_zero_runs(bytes, 4, 1000, &stats);
    EXPECT_LE(stats.run_elements, 2 * all) << seed;
    if (longest < 2 * kShortestRun) continue;
    EXPECT_EQ(stats.zero_bytes.count, 2 * longest) << seed;
    EXPECT_EQ(stats.zero_bytes.first, 1000 + 2 * place) << seed;
  }
}

// 8 rows of 4 blocks of 32 codes, scales 1, 2, 3, …: rows 3 to 5 hold zero bytes.
class Holes : public ::testing::Test {
 protected:
  Holes() : matrix_(EncodedMatrix::make(parse_format("int4-g32"), 8, 128)) {
    std::fill(matrix_.codes.begin(), matrix_.codes.end(), std::byte{0x79});
    for (uint64_t s = 0; s < 32; ++s) set_scale(s, static_cast<uint16_t>(0x3F80 + s));
    std::fill_n(matrix_.codes.begin() + 3 * 64, 3 * 64, std::byte{0});
  }
  void set_scale(uint64_t index, uint16_t bits) { std::memcpy(matrix_.scales.data() + 2 * index, &bits, 2); }
  HoleStats stats() const {
    HoleStats stats;
    HoleFinder finder(matrix_, 5000, &stats);
    const std::vector<uint8_t> lost(4, 8), others(4, 1);  // |0 - 8|, |9 - 8|
    for (uint64_t row = 0; row < 8; ++row) finder.row(row, row >= 3 && row <= 5 ? lost : others);
    finder.end();
    return stats;
  }
  EncodedMatrix matrix_;
};

TEST_F(Holes, AreBlocksOfZeroBytesUnderScalesThatDiffer) {
  const HoleStats found = stats();
  EXPECT_EQ(found.blocks, 12u);
  EXPECT_EQ(found.longest.first, 5000u + 3 * 128);
  EXPECT_EQ(found.longest.count, 3u * 128);
  EXPECT_EQ(found.scales.count(), 3u);
}

TEST_F(Holes, AreNoneUnderOneScale) {
  for (uint64_t s = 12; s < 24; ++s) set_scale(s, 0x3F80);
  EXPECT_EQ(stats().longest.count, 0u);
  set_scale(13, 0x4000);  // one that has underflowed
  EXPECT_EQ(stats().longest.count, 0u);
  set_scale(14, 0x4040);
  EXPECT_EQ(stats().longest.count, 3u * 128);
}

TEST_F(Holes, EndWhereAScaleIsZero) {
  set_scale(16, 0);
  EXPECT_EQ(stats().blocks, 11u);
  EXPECT_EQ(stats().longest.first, 5000u + 4 * 128 + 32);
  EXPECT_EQ(stats().longest.count, 7u * 32);
}

TEST(FlatCodesTest, OneByteUnderDifferentScalesInAnyOrderOfPieces) {
  EncodedMatrix a = EncodedMatrix::make(parse_format("int4-channel"), 2, 64);
  EncodedMatrix b = a;
  const uint16_t one = 0x3F80, two = 0x4000;
  for (uint64_t r = 0; r < 2; ++r) {
    std::memcpy(a.scales.data() + 2 * r, &one, 2);
    std::memcpy(b.scales.data() + 2 * r, &two, 2);
  }
  const auto state_of = [](const std::vector<const EncodedMatrix*>& pieces) {
    FlatState state;
    for (const EncodedMatrix* piece : pieces) state.add(flat_codes(*piece));
    return state;
  };
  EXPECT_FALSE(state_of({&a}).is_unwritten());
  EXPECT_FALSE(state_of({&a, &a}).is_unwritten());
  EXPECT_TRUE(state_of({&a, &b}).is_unwritten());
  EXPECT_TRUE(state_of({&b, &a, &a}).is_unwritten());
  EncodedMatrix c = a;
  c.codes[5] = std::byte{1};
  EXPECT_FALSE(flat_codes(c).has_value());
  for (const auto& order : {std::vector<const EncodedMatrix*>{&a, &b, &c}, {&c, &b, &a}, {&a, &c, &b}})
    EXPECT_FALSE(state_of(order).is_unwritten());
}

}  // namespace
}  // namespace nibble
