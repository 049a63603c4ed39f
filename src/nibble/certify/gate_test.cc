#include "nibble/certify/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "nibble/base/error.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string> kNames = {"flip_rate", "horizon"};

std::string refusal(const char* text) {
  try {
    parse_gate(text, kNames);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> failed(const char* text, double flip_rate, std::optional<double> horizon) {
  return failed_bounds(parse_gate(text, kNames), [&](std::string_view name) -> std::optional<double> {
    return name == "flip_rate" ? flip_rate : horizon;
  });
}

TEST(Gate, bounds_hold_or_are_named_with_their_numbers) {
  const char* const text = "flip_rate<=0.02,horizon>=256";
  EXPECT_THAT(failed(text, 0.02, 256), IsEmpty());
  EXPECT_THAT(failed(text, 0.0201, 300), ElementsAre("flip_rate is 0.0201, not <= 0.02"));
  EXPECT_THAT(failed(text, 0.01, 255), ElementsAre("horizon is 255, not >= 256"));
  EXPECT_THAT(failed(text, 0.5, std::nullopt),
              ElementsAre("flip_rate is 0.5, not <= 0.02", "horizon is not there, not >= 256"));
}

TEST(Gate, not_a_number_holds_no_bound) {
  EXPECT_EQ(failed("flip_rate<=1", std::nan(""), 0).size(), 1U);
  EXPECT_EQ(failed("flip_rate>=0", std::nan(""), 0).size(), 1U);
}

TEST(Gate, refusals) {
  EXPECT_THAT(refusal("flip_rate<0.02"), HasSubstr("<= or >="));
  EXPECT_THAT(refusal("flip_rate"), HasSubstr("<= or >="));
  EXPECT_THAT(refusal("flip_rates<=1"), HasSubstr("nearest flip_rate"));
  EXPECT_THAT(refusal("horizon>=many"), HasSubstr("no number"));
  EXPECT_THAT(refusal("horizon>="), HasSubstr("no number"));
  EXPECT_THAT(refusal("horizon>=nan"), HasSubstr("no number"));
  EXPECT_THAT(refusal("horizon>=1,"), HasSubstr("<= or >="));
}

}  // namespace
}  // namespace nibble
