#include "nibble/base/text_pool.h"

#include <gtest/gtest.h>

namespace nibble {
namespace {

TEST(TextPool, EqualTextsAreOneAndStayWhereTheyAre) {
  TextPool pool;
  const std::string_view first = pool.keep("short");
  for (int i = 0; i < 1000; ++i) pool.keep("another text, number " + std::to_string(i));
  EXPECT_EQ(pool.keep("short").data(), first.data());
  TextPool moved = std::move(pool);
  EXPECT_EQ(moved.keep("short").data(), first.data());
  EXPECT_EQ(first, "short");
}

}  // namespace
}  // namespace nibble
