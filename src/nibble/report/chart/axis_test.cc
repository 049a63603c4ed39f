#include "nibble/report/chart/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nibble {
namespace {

using ::testing::ElementsAre;

TEST(ChartAxis, linear_ticks_are_round_and_reach_the_largest_value) {
  const ChartAxis axis = linear_axis(141, 6, 0, 300);
  EXPECT_THAT(axis.ticks, ElementsAre(0, 50, 100, 150));
  EXPECT_EQ(axis.place(0), 0);
  EXPECT_EQ(axis.place(75), 150);
  EXPECT_EQ(axis.place(150), 300);
  EXPECT_THAT(linear_axis(2, 6, 0, 1).ticks, ElementsAre(0, 0.5, 1, 1.5, 2));
  EXPECT_THAT(linear_axis(0.6, 6, 0, 1).ticks.size(), 7U);
  EXPECT_THAT(linear_axis(0, 4, 0, 1).ticks.back(), 1);  // nothing to show is no reason to divide by zero
}

TEST(ChartAxis, logarithmic_places_are_equal_for_equal_ratios) {
  const ChartAxis axis = log_axis(1, 100, 9, 300, 0);  // upwards, as the second axis of a picture
  EXPECT_THAT(axis.ticks, ElementsAre(1, 2, 5, 10, 20, 50, 100));
  EXPECT_DOUBLE_EQ(axis.place(1), 300);
  EXPECT_DOUBLE_EQ(axis.place(10), 150);
  EXPECT_DOUBLE_EQ(axis.place(100), 0);
  EXPECT_DOUBLE_EQ(axis.place(1000), 0);
}

TEST(ChartAxis, logarithmic_ends_are_rounded_outwards) {
  EXPECT_THAT(log_axis(4.9, 81, 9, 0, 1).ticks, ElementsAre(2, 5, 10, 20, 50, 100));
  EXPECT_THAT(log_axis(0.03, 0.04, 9, 0, 1).ticks, ElementsAre(0.02, 0.05));
  EXPECT_THAT(log_axis(5, 5, 9, 0, 1).ticks, ElementsAre(5, 10));
  EXPECT_THAT(log_axis(0.1, 25000, 9, 0, 1).ticks, ElementsAre(0.1, 1, 10, 100, 1000, 10000));
}

TEST(ChartAxis, doubling_keeps_its_ends_and_marks_powers_of_two) {
  const ChartAxis axis = doubling_axis(1, 512, 10, 0, 9);
  EXPECT_THAT(axis.ticks, ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 256, 512));
  EXPECT_DOUBLE_EQ(axis.place(8), 3);
  EXPECT_THAT(doubling_axis(3, 20, 10, 0, 1).ticks, ElementsAre(4, 8, 16));
  // Every second one where all would be too many.
  EXPECT_THAT(doubling_axis(128, 131072, 10, 0, 1).ticks, ElementsAre(128, 512, 2048, 8192, 32768, 131072));
}

TEST(ChartAxis, ticks_in_words) {
  EXPECT_EQ(tick_text(0.5), "0.5");
  EXPECT_EQ(tick_text(2048), "2048");
  EXPECT_EQ(tick_text(131072), "131,072");
}

}  // namespace
}  // namespace nibble
