#include "nibble/tokenizer/word_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nibble/base/error.h"
#include "nibble/testing/thrown_error.h"
#include "nibble/tokenizer/regex_dialect.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::thrown_error;
using testing::value_of;

std::vector<TextRange> matches(const WordPattern& pattern, std::u16string_view text, TextRange range,
                               std::chrono::nanoseconds base = std::chrono::seconds(10)) {
  std::vector<TextRange> found;
  MatchBudget budget(text.size(), base, std::chrono::microseconds(0));
  pattern.for_ranges(text, {range}, &budget, [&](TextRange, const std::vector<TextRange>& in) { found = in; });
  return found;
}

TEST(WordPattern, SeesNoFurtherThanItsRange) {
  const WordPattern pattern = WordPattern::of_regex(R"(\s+(?!\S)|a)", "t.json");
  EXPECT_THAT(matches(pattern, u"a  b", {0, 4}), ElementsAre(TextRange{0, 1}, TextRange{1, 2}));
  EXPECT_THAT(matches(pattern, u"a  b", {1, 3}), ElementsAre(TextRange{1, 3}));
}

TEST(WordPattern, TakesTextAsItIs) {
  const WordPattern pattern = WordPattern::of_text(R"(a.[b]\d^$&&--)", "t.json");
  EXPECT_THAT(matches(pattern, uR"(xa.[b]\d^$&&--)", {0, 14}), ElementsAre(TextRange{1, 14}));
  EXPECT_THAT(matches(pattern, uR"(axbb1)", {0, 5}), ElementsAre());
}

TEST(WordPattern, RefusesWhatMeansSomethingElse) {
  for (const char* pattern : {R"(\bword)", R"(a{1,3}+)", R"((?m:a.b))", R"((?s)a)", R"(\Ka)", R"([a--b])", R"(\p{^L})",
                              R"(\R)", R"(\X)", R"((?<name>a)\k<name>)"}) {
    const Error error = thrown_error([&] { WordPattern::of_regex(pattern, "t.json"); });
    EXPECT_EQ(error.file(), "t.json") << pattern;
    EXPECT_EQ(value_of(error, "pattern"), pattern);
    EXPECT_FALSE(error.ways_out().empty());
  }
}

TEST(WordPattern, RefusesWhatIcuCannotRead) {
  for (const char* pattern : {"(", "a**", "[a", R"(\p{Nonsense})", "(?<=a*)b", "\\"}) {
    const Error error = thrown_error([&] { WordPattern::of_regex(pattern, "t.json"); });
    EXPECT_EQ(error.message(), "a regular expression that cannot be read") << pattern;
    EXPECT_THAT(value_of(error, "reason"), HasSubstr("U_")) << pattern;
  }
  const Error error = thrown_error([&] { WordPattern::of_regex(std::string(20000, 'a'), "t.json"); });
  EXPECT_EQ(value_of(error, "bytes"), "20000");
}

TEST(WordPattern, EndsWhatTakesTooLong) {
  const std::u16string text(5000, u'a');
  const auto units = static_cast<uint32_t>(text.size());
  // Exponential in one place, and quadratic over all of them.
  for (const char* pattern : {"(?:a|a)*b", "(?>a*)b|a*?c"}) {
    const WordPattern slow = WordPattern::of_regex(pattern, "t.json");
    const Error error = thrown_error([&] { matches(slow, text, {0, units}, std::chrono::milliseconds(20)); });
    EXPECT_EQ(error.file(), "t.json") << pattern;
    EXPECT_THAT(value_of(error, "reason"), ::testing::StartsWith("U_REGEX_")) << pattern;
    EXPECT_EQ(value_of(error, "pattern"), pattern);
  }
}

TEST(WordPattern, EndsWhatTakesTooMuchMemory) {
  const std::u16string text(100000, u'a');
  const WordPattern deep = WordPattern::of_regex("(?:(a)|b)*", "t.json", 1 << 16);
  const Error error = thrown_error([&] { matches(deep, text, {0, 100000}); });
  EXPECT_EQ(value_of(error, "reason"), "U_REGEX_STACK_OVERFLOW");
}

TEST(RegexDialect, WritesClassesAsOnigurumaReadsThem) {
  EXPECT_EQ(icu_pattern(R"(\w+[^\h])", "t.json"), R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]+[^[0-9a-fA-F]])");
  EXPECT_EQ(icu_pattern(R"(\p{L}+\x{41}+\\w)", "t.json"), R"(\p{L}+\x{41}+\\w)");
}

}  // namespace
}  // namespace nibble
