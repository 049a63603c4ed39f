#include "nibble/base/check.h"

#include <gtest/gtest.h>

namespace nibble {
namespace {

TEST(CheckDeathTest, NamesTheConditionAndThePlace) {
  EXPECT_DEATH(NIBBLE_CHECK(1 + 1 == 3),
               "internal error: 1 \\+ 1 == 3 does not hold at .*check_test.cc:[0-9]+\\. Please report");
}

TEST(Check, HoldingConditionsAreExpressions) {
  int evaluations = 0;
  NIBBLE_CHECK(++evaluations == 1);
  EXPECT_EQ(evaluations, 1);
}

}  // namespace
}  // namespace nibble
