#include "nibble/base/checked_math.h"

#include <gtest/gtest.h>

#include <vector>

namespace nibble {
namespace {

constexpr uint64_t kMax = UINT64_MAX;

TEST(CheckedMath, ProductsEndAtTwoToThe64) {
  EXPECT_EQ(checked_mul(kMax, 1), kMax);
  EXPECT_EQ(checked_mul(kMax, 0), 0u);
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, (uint64_t{1} << 32) - 1), kMax - 0xFFFFFFFF);
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_mul(kMax, 2), std::nullopt);
}

TEST(CheckedMath, SumsEndAtTwoToThe64) {
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_add(kMax, kMax), std::nullopt);
}

TEST(CheckedMath, ProductOfDimensions) {
  const auto product = [](std::vector<uint64_t> dims) { return checked_product(dims); };
  EXPECT_EQ(product({}), 1u);
  EXPECT_EQ(product({384, 2048, 896}), 704643072u);
  EXPECT_EQ(product({0, kMax, 1}), 0u);
  EXPECT_EQ(product({kMax, kMax, 0}), std::nullopt);  // overflows before the zero comes
  EXPECT_EQ(product({kMax, 1, 1}), kMax);
}

TEST(CheckedMath, CeilDivDoesNotOverflow) {
  EXPECT_EQ(ceil_div(0, 128), 0u);
  EXPECT_EQ(ceil_div(1, 128), 1u);
  EXPECT_EQ(ceil_div(576, 128), 5u);
  EXPECT_EQ(ceil_div(128, 128), 1u);
  EXPECT_EQ(ceil_div(kMax, 2), uint64_t{1} << 63);
  EXPECT_EQ(ceil_div(kMax, kMax), 1u);
}

static_assert(checked_mul(3, 5) == 15 && ceil_div(7, 2) == 4);  // usable at compile time

}  // namespace
}  // namespace nibble
