// Pictures read back: lengths are proportional to values, points lie where they belong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "nibble/report/chart/axis.h"
#include "nibble/report/chart/bar_chart.h"
#include "nibble/report/chart/line_chart.h"
#include "nibble/report/chart/step_chart.h"
#include "nibble/report/chart/svg.h"
#include "nibble/testing/markup.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;
using testing::MarkupElement;
using ::testing::Not;
using testing::parse_markup;
using testing::with_class;

std::vector<Spot> spots_of(const MarkupElement& element) {
  std::vector<Spot> spots;
  const std::string& text = element.attributes.at("points");
  for (size_t at = 0; at < text.size();) {
    Spot spot;
    int length = 0;
    if (std::sscanf(text.c_str() + at, "%lf,%lf%n", &spot.x, &spot.y, &length) != 2) break;
    spots.push_back(spot);
    at += static_cast<size_t>(length) + 1;
  }
  return spots;
}

TEST(Markup, untrusted_text_stays_text) {
  EXPECT_EQ(markup("<script>alert('1')</script> & \"x\""),
            "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;x&quot;");
  EXPECT_EQ(markup(std::string_view("a\x1b[31m\xff", 7)), "a\\x1b[31m\\xff");
}

TEST(Markup, numbers_are_short_and_never_special) {
  EXPECT_EQ(fixed(12.5), "12.5");
  EXPECT_EQ(fixed(-0.001), "0");
  EXPECT_EQ(fixed(300), "300");
  EXPECT_EQ(fixed(1e7 / 3), "3333333.33");
  EXPECT_EQ(fixed(NAN), "0");
  EXPECT_EQ(fixed(INFINITY), "0");
}

BarChart two_bars() {
  BarChart chart{.id = "c", .title = "T"};
  chart.bars.push_back({"one", "30", {{"a", 10, "w1", "ten"}, {"b", 20, "w2", ""}}});
  chart.bars.push_back({"two", "100", {{"a", 100, "w1", ""}}});
  chart.x_label = tick_text;
  return chart;
}

TEST(BarChart, lengths_are_proportional_and_parts_follow_each_other) {
  const auto parts = with_class(parse_markup(bar_chart(two_bars())), "rect", "part");
  ASSERT_EQ(parts.size(), 3U);
  const double whole = kBarRight - kBarLeft;  // 100, where the axis ends
  EXPECT_NEAR(parts[0].number("width"), whole * 0.1, 0.01);
  EXPECT_NEAR(parts[1].number("width"), whole * 0.2, 0.01);
  EXPECT_NEAR(parts[2].number("width"), whole, 0.01);
  EXPECT_NEAR(parts[0].number("x"), kBarLeft, 0.01);
  EXPECT_NEAR(parts[1].number("x"), parts[0].number("x") + parts[0].number("width"), 0.02);
  EXPECT_EQ(parts[0].number("y"), parts[1].number("y"));
  EXPECT_GT(parts[2].number("y"), parts[1].number("y") + parts[1].number("height"));
}

TEST(BarChart, what_exceeds_the_limit_is_hatched) {
  BarChart chart = two_bars();
  chart.limit = 40;
  chart.limit_name = "room: 40";
  const auto elements = parse_markup(bar_chart(chart));
  const auto over = with_class(elements, "rect", "over");
  ASSERT_EQ(over.size(), 1U);
  const double whole = kBarRight - kBarLeft;
  EXPECT_NEAR(over[0].number("x"), kBarLeft + 0.4 * whole, 0.01);
  EXPECT_NEAR(over[0].number("width"), 0.6 * whole, 0.01);
  EXPECT_EQ(over[0].attributes.at("fill"), "url(#c-hatch)");
  const auto limit = with_class(elements, "line", "limit");
  ASSERT_EQ(limit.size(), 1U);
  EXPECT_NEAR(limit[0].number("x1"), over[0].number("x"), 0.01);
  chart.limit = 100;
  EXPECT_THAT(bar_chart(chart), Not(HasSubstr("hatch")));
}

LineChart a_line() {
  LineChart chart{.id = "l", .title = "T", .description = "D", .x_title = "x", .y_title = "y"};
  chart.series.push_back({"first", {{1, 1, 1, 10, ""}, {8, 10, 10, 100, ""}, {64, 100, 10, 100, ""}}});
  chart.x_label = chart.y_label = tick_text;
  return chart;
}

TEST(LineChart, equal_ratios_are_equal_distances) {
  const auto elements = parse_markup(line_chart(a_line()));
  const auto lines = with_class(elements, "polyline", "line");
  ASSERT_EQ(lines.size(), 1U);
  const std::vector<Spot> spots = spots_of(lines[0]);
  ASSERT_EQ(spots.size(), 3U);
  EXPECT_NEAR(spots[0].y, kPlotBottom, 0.01);
  EXPECT_NEAR(spots[1].y, (kPlotBottom + kPlotTop) / 2, 0.01);
  EXPECT_NEAR(spots[2].y, kPlotTop, 0.01);
  EXPECT_NEAR(spots[1].x - spots[0].x, spots[2].x - spots[1].x, 0.02);
  const std::vector<Spot> band = spots_of(with_class(elements, "polygon", "band").at(0));
  ASSERT_EQ(band.size(), 6U);  // there along the low end, back along the high one
  EXPECT_NEAR(band[0].y, kPlotBottom, 0.01);
  EXPECT_NEAR(band[5].y, (kPlotBottom + kPlotTop) / 2, 0.01);
}

TEST(LineChart, what_was_asked_for_is_ringed_even_beyond_the_lines) {
  LineChart chart = a_line();
  chart.asked = ChartPoint{4096, 100, 0, 0, ""};
  chart.asked_name = "asked";
  const auto rings = with_class(parse_markup(line_chart(chart)), "circle", "ring");
  ASSERT_EQ(rings.size(), 2U);  // and in the legend
  EXPECT_NEAR(rings[0].number("cx"), kPlotRight - 8, 0.01);
  EXPECT_NEAR(rings[0].number("cy"), kPlotTop, 0.01);
}

TEST(LineChart, points_that_no_logarithm_has_are_left_out) {
  LineChart chart = a_line();
  chart.series[0].points[1].y = 0;
  chart.series[0].points[2].y = INFINITY;
  EXPECT_TRUE(with_class(parse_markup(line_chart(chart)), "polyline", "line").empty());
  chart.series[0].points[0].x = 0;
  EXPECT_EQ(line_chart(chart), "");
}

TEST(StepChart, values_hold_until_the_next_point_and_bands_jump_with_them) {
  StepChart chart{.id = "c", .title = "t", .description = "d", .x_title = "x", .y_title = "y"};
  chart.series.push_back({.name = "one", .points = {{2, 0.5, 0.25, 0.75, ""}, {10, 1, 1, 1, ""}}, .start = 0});
  const std::vector<MarkupElement> all = parse_markup(step_chart(chart));
  const std::vector<MarkupElement> lines = with_class(all, "polyline", "line");
  ASSERT_EQ(lines.size(), 1U);
  // (0, 0), (2, 0), (2, ½), (10, ½), (10, 1): right, up, right, up.
  const std::vector<Spot> spots = spots_of(lines[0]);
  ASSERT_EQ(spots.size(), 5U);
  EXPECT_EQ(spots[0].y, spots[1].y);
  EXPECT_EQ(spots[1].x, spots[2].x);
  EXPECT_EQ(spots[2].y, spots[3].y);
  EXPECT_EQ(spots[3].x, spots[4].x);
  EXPECT_NEAR(spots[0].y - spots[2].y, spots[2].y - spots[4].y, 0.02);          // ½ is half way
  EXPECT_NEAR((spots[3].x - spots[0].x) / (spots[1].x - spots[0].x), 5, 0.01);  // 10 is five times as far as 2
  EXPECT_EQ(with_class(all, "polygon", "band").size(), 1U);
  EXPECT_EQ(step_chart({.id = "c", .title = "t", .description = "d", .x_title = "x", .y_title = "y"}), "");
}

}  // namespace
}  // namespace nibble
