// The page of a plan, read back.
#include "nibble/plan/report_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "nibble/base/error.h"
#include "nibble/report/chart/bar_chart.h"
#include "nibble/testing/markup.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;
using testing::MarkupElement;
using ::testing::Not;
using testing::parse_markup;
using testing::with_class;

PlanRequest fitting() {
  PlanRequest request;
  request.model = "kimi-k2.5";
  request.formats = {"int4-g32"};
  request.gpus = 8;
  request.draft = 1;
  return request;
}

PlanRequest too_large() {
  PlanRequest request;
  request.model = "qwen3-235b-a22b";
  request.formats = {"bf16"};
  request.gpu = "h100";
  request.gpus = 4;
  return request;
}

PlanRequest flat() {
  PlanRequest request;
  request.total = 1e12;
  request.active = 32e9;
  request.gpus = 8;
  return request;
}

std::vector<std::string> ids_of(const std::vector<MarkupElement>& elements, std::string_view name) {
  std::vector<std::string> ids;
  for (const MarkupElement& element : elements) {
    if (element.name == name) ids.push_back(element.attributes.at("id"));
  }
  return ids;
}

// From <svg id="…"> to its end.
std::string picture(const std::string& page, const std::string& id) {
  const size_t at = page.find("<svg id=\"" + id + "\"");
  const size_t end = page.find("</svg>", at);
  return at == std::string::npos ? "" : page.substr(at, end + 6 - at);
}

TEST(PlanHtml, every_kind_of_plan_has_its_pictures) {
  const std::vector<std::string> formats{"weights-by-format", "gpus-by-format", "floor-by-format"};
  std::vector<std::string> all = formats;
  for (const char* id : {"memory-by-class", "latency-by-batch", "prefill"}) all.emplace_back(id);
  EXPECT_EQ(ids_of(parse_markup(plan_html(make_plan(fitting()))), "svg"), all);
  EXPECT_EQ(ids_of(parse_markup(plan_html(make_plan(too_large()))), "svg"), all);
  EXPECT_EQ(ids_of(parse_markup(plan_html(make_plan(flat()))), "svg"), formats);
}

TEST(PlanHtml, nothing_reaches_out_and_nothing_runs) {
  for (const PlanRequest& request : {fitting(), too_large(), flat()}) {
    const std::string page = plan_html(make_plan(request));
    for (const char* never : {"http:", "https:", "//", "<script", "<link", "<img", "<iframe",
                              " src=", " href=", "@import", " onload", " style="})
      EXPECT_THAT(page, Not(HasSubstr(never)));
    // The hatching of the same page is all that a picture may refer to.
    EXPECT_FALSE(std::regex_search(page, std::regex(R"(url\((?!#))")));
  }
}

TEST(PlanHtml, the_same_plan_gives_the_same_bytes) {
  EXPECT_EQ(plan_html(make_plan(fitting())), plan_html(make_plan(fitting())));
}

TEST(PlanHtml, names_and_notes_stay_text) {
  Plan plan = make_plan(fitting());
  Subject subject = *plan.subject;
  subject.name = "<script>alert(1)</script>\x1b[2J";
  plan.subject = std::make_shared<const Subject>(subject);
  plan.notes.emplace_back("a \"note\" with </li><b>markup</b>");
  plan.rows[0].title = "<i>title</i>";
  plan.device.title = "<u>device</u>";
  plan.search.refused.push_back({Layout{}, {"</td>reason", {}, {"<way>"}}});
  const std::string page = plan_html(plan);
  EXPECT_THAT(page, HasSubstr("<h1>&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J on 8"));
  for (const char* never : {"<script", "<b>", "<i>", "<u>", "</td>reason", "<way>"})
    EXPECT_THAT(page, Not(HasSubstr(never)));
  EXPECT_NO_THROW(parse_markup(page));
}

TEST(PlanHtml, memory_is_drawn_to_scale) {
  const Plan plan = make_plan(fitting());
  const MemoryPlan& memory = plan.chosen->memory;
  const auto elements = parse_markup(picture(plan_html(plan), "memory-by-class"));
  const auto cache = with_class(elements, "rect", "cache");
  ASSERT_EQ(cache.size(), 1U);
  const double limit = with_class(elements, "line", "limit").at(0).number("x1") - kBarLeft;
  EXPECT_NEAR(cache[0].number("width") / limit, static_cast<double>(memory.kv) / static_cast<double>(memory.capacity),
              1e-3);
  double all = 0;
  for (const MarkupElement& part : with_class(elements, "rect", "part")) all += part.number("width");
  EXPECT_NEAR(all / limit, static_cast<double>(memory.total()) / static_cast<double>(memory.capacity), 1e-3);
  EXPECT_TRUE(with_class(elements, "rect", "over").empty());
}

TEST(PlanHtml, what_does_not_fit_is_marked_and_ways_out_are_told) {
  const Plan plan = make_plan(too_large());
  ASSERT_FALSE(plan.fits);
  const MemoryPlan& memory = plan.chosen->memory;
  const std::string page = plan_html(plan);
  EXPECT_THAT(page, HasSubstr("It does not fit"));
  for (const Change& change : plan.changes) EXPECT_THAT(page, HasSubstr(change.what));
  const auto elements = parse_markup(picture(page, "memory-by-class"));
  const auto over = with_class(elements, "rect", "over");
  ASSERT_EQ(over.size(), 1U);
  const double limit = with_class(elements, "line", "limit").at(0).number("x1") - kBarLeft;
  EXPECT_NEAR(over[0].number("width") / limit,
              static_cast<double>(memory.total() - memory.capacity) / static_cast<double>(memory.capacity), 1e-3);
}

TEST(PlanHtml, a_line_for_each_context_and_the_band_only_where_it_was_measured) {
  const Plan plan = make_plan(fitting());
  const auto elements = parse_markup(picture(plan_html(plan), "latency-by-batch"));
  EXPECT_EQ(with_class(elements, "polyline", "line").size(), 4U);  // 1K, 8K, 32K, 128K
  EXPECT_EQ(with_class(elements, "polygon", "band").size(), plan.device.measured_read ? 4U : 0U);
  PlanRequest request = fitting();
  request.gpu = "mi300x";
  const Plan other = make_plan(request);
  ASSERT_FALSE(other.device.measured_read);
  EXPECT_THAT(picture(plan_html(other), "latency-by-batch"), Not(HasSubstr("band")));
}

TEST(PlanHtml, scales_are_a_share_of_the_bar) {
  const Plan plan = make_plan(flat());
  const auto elements = parse_markup(picture(plan_html(plan), "weights-by-format"));
  const auto scales = with_class(elements, "rect", "scales");
  const auto codes = with_class(elements, "rect", "w1");
  ASSERT_EQ(scales.size(), 4U);  // all but 16 bits
  ASSERT_EQ(codes.size(), 4U);
  EXPECT_NEAR(scales[1].number("width") / codes[1].number("width"), 0.125, 1e-3);  // 16 bits for 32 of 4
}

TEST(PlanHtml, a_model_that_no_layout_can_hold_is_a_page_without_its_parts) {
  Plan plan = make_plan(too_large());
  plan.chosen.reset();
  plan.step.reset();
  plan.decode.clear();
  plan.prefill.clear();
  plan.search.too_large.clear();
  EXPECT_EQ(ids_of(parse_markup(plan_html(plan)), "svg").size(), 3U);
}

}  // namespace
}  // namespace nibble
