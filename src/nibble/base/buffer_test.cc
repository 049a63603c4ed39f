#include "nibble/base/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nibble {
namespace {

TEST(Buffer, GivesWhatIsAskedForAndMovesOnlyToGrow) {
  Buffer buffer;
  EXPECT_TRUE(buffer.get(0).empty());
  const auto large = buffer.get(1000);
  std::fill(large.begin(), large.end(), std::byte{7});
  EXPECT_EQ(large.size(), 1000u);
  const auto small = buffer.get(10);
  EXPECT_EQ(small.data(), large.data());
  EXPECT_EQ(small.size(), 10u);
  EXPECT_EQ(small[9], std::byte{7});
  EXPECT_EQ(buffer.get(1001).size(), 1001u);
}

}  // namespace
}  // namespace nibble
