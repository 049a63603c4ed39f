#include "nibble/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace nibble {
namespace {

using ::testing::HasSubstr;

TEST(Error, RendersEverythingOnOneLine) {
  Error error("the span is shorter than the shape");
  error.file("a/model.safetensors").tensor("w").value("shape_bytes", 4000000).value("span_bytes", 4);
  error.way_out("download the file again").way_out("ask its author").context("reading the header").context("opening");
  EXPECT_STREQ(
      error.what(),
      "the span is shorter than the shape [while reading the header] [while opening] (file a/model.safetensors, "
      "tensor w, shape_bytes 4000000, span_bytes 4); try: download the file again; or: ask its author");
}

TEST(Error, MessageAloneHasNoPunctuation) { EXPECT_STREQ(Error("no").what(), "no"); }

TEST(Error, KeepsTheParts) {
  const Error error = Error("m").file("f").tensor("t").value("k", std::string("v")).way_out("w");
  EXPECT_EQ(error.message(), "m");
  EXPECT_EQ(error.file(), "f");
  EXPECT_EQ(error.tensor(), "t");
  ASSERT_EQ(error.values().size(), 1u);
  EXPECT_EQ(error.values()[0], (std::pair<std::string, std::string>("k", "v")));
  EXPECT_EQ(error.ways_out(), std::vector<std::string>{"w"});
}

TEST(Error, NumbersKeepTheirDigits) {
  const auto text = [](auto number) { return Error("m").value("k", number).values()[0].second; };
  EXPECT_EQ(text(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(text(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(text(3.85e-5), "3.85e-05");
  EXPECT_EQ(text(1.25e-9F), "1.25e-09");  // std::to_string would say 0.000000
  EXPECT_EQ(text(0.1F), "0.1");
  EXPECT_EQ(text(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(text(true), "true");
  EXPECT_EQ(text("a literal"), "a literal");
}

TEST(Error, HostileNamesCannotReachTheTerminal) {
  const Error error = Error("bad name").tensor("a\x1b[2J\nb").file("x\ty");
  EXPECT_STREQ(error.what(), R"(bad name (file x\x09y, tensor a\x1b[2J\x0ab))");
  EXPECT_EQ(error.tensor(), "a\x1b[2J\nb");  // the parts stay as they came
}

TEST(Error, VeryLongNamesAreCut) {
  const Error error = Error("bad name").tensor(std::string(5'000'000, 'x'));
  EXPECT_LT(std::string(error.what()).size(), 1100u);
  EXPECT_THAT(error.what(), HasSubstr("xxx… (5000000 bytes)"));
}

TEST(Printable, LeavesTextAlone) {
  for (const char* text : {"", "plain", "Grüße", "日本語", "\U0001F600", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesControlCharacters) {
  EXPECT_EQ(printable(std::string_view("\0\x1f\x7f", 3)), R"(\x00\x1f\x7f)");
  EXPECT_EQ(printable("\xC2\x80\xC2\x9F\xC2\xA0"), "\\xc2\\x80\\xc2\\x9f\xC2\xA0");  // C1 ends before U+00A0
  EXPECT_EQ(printable("a\u202Eb"), R"(a\xe2\x80\xaeb)");                             // turns the direction of writing
  EXPECT_EQ(printable("\u2028"), R"(\xe2\x80\xa8)");
  EXPECT_EQ(printable("\u2066\u2069"), R"(\xe2\x81\xa6\xe2\x81\xa9)");
}

TEST(Printable, EscapesBrokenUtf8) {
  EXPECT_EQ(printable("\xFF"), R"(\xff)");
  EXPECT_EQ(printable("\x80"), R"(\x80)");
  EXPECT_EQ(printable("\xC3"), R"(\xc3)");                          // cut
  EXPECT_EQ(printable("\xC3("), R"(\xc3()");                        // wrong continuation
  EXPECT_EQ(printable("\xC0\xAF"), R"(\xc0\xaf)");                  // longer than needed
  EXPECT_EQ(printable("\xE0\x80\xAF"), R"(\xe0\x80\xaf)");          // the same with three bytes
  EXPECT_EQ(printable("\xF0\x80\x80\xAF"), R"(\xf0\x80\x80\xaf)");  // and four
  EXPECT_EQ(printable("\xED\xA0\x80"), R"(\xed\xa0\x80)");          // half of a surrogate pair
  EXPECT_EQ(printable("\xF4\x90\x80\x80"), R"(\xf4\x90\x80\x80)");  // beyond U+10FFFF
}

TEST(Printable, EveryByteGivesPrintableUtf8) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string out = printable(std::string{static_cast<char>(first), static_cast<char>(second)});
      EXPECT_EQ(printable(out), out) << first << ' ' << second;  // nothing left to escape
    }
  }
}

}  // namespace
}  // namespace nibble
