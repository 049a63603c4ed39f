#include "nibble/checkpoint/json_scanner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nibble/base/json.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using testing::thrown_error;
using testing::value_of;

const std::string kSource = "file.json";

bool accepts(std::string_view text, NonFiniteNumbers non_finite = NonFiniteNumbers::kRefuse) {
  try {
    JsonScanner scan(text, kSource, non_finite);
    scan.skip();
    scan.end();
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string scanned(std::string_view text) {
  JsonScanner scan(text, kSource);
  std::string found(scan.string());
  scan.end();
  return found;
}

TEST(JsonScanner, NumbersOfPythonOnlyIfAskedTo) {
  for (const char* text : {"NaN", "Infinity", "-Infinity", "[1,NaN , -Infinity]", R"({"a":Infinity})"}) {
    EXPECT_FALSE(accepts(text)) << text;
    EXPECT_TRUE(accepts(text, NonFiniteNumbers::kAccept)) << text;
    EXPECT_NO_THROW(parse_json(text, kSource)) << text;
  }
  for (const char* text : {"nan", "-NaN", "+Infinity", "Infinit", "-Infinit", "Infinity1", "1Infinity", "NaNNaN", "N",
                           "I", "-", "{NaN:1}", "[NaN 1]"}) {
    EXPECT_FALSE(accepts(text, NonFiniteNumbers::kAccept)) << text;
    EXPECT_THROW(parse_json(text, kSource), Error) << text;
  }
}

TEST(JsonScanner, AgreesWithTheLibraryOnWhatIsJson) {
  for (const char* text : {
           "{}",
           "[]",
           " [ ] ",
           "\t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } \n",
           "0",
           "-0",
           "1.5",
           "1e5",
           "1E+5",
           "-1.25e-3",
           "12345678901234567890123",
           "true",
           "false",
           "null",
           "\"\"",
           "\"\\u00e9\"",
           "\"\\ud83d\\ude00\"",
           "\"\xC3\xBC\"",
           "\"\xF0\x9F\x98\x80\"",
           "[[[[]]]]",
           "\"\x7F\"",
           // not JSON
           "",
           " ",
           "{",
           "}",
           "[",
           "]",
           "[1,]",
           "[,1]",
           "[1 2]",
           "{\"a\"}",
           "{\"a\":}",
           "{\"a\":1,}",
           "{a:1}",
           "{1:2}",
           "01",
           "-",
           "-a",
           "1.",
           ".5",
           "1e",
           "1e+",
           "+1",
           "0x1",
           "tru",
           "truee",
           "nul",
           "NaN",
           "Infinity",
           "\"",
           "\"a",
           "\"\\\"",
           "\"\\x\"",
           "\"\\u12\"",
           "\"\\u12g4\"",
           "\"\\ud83d\"",
           "\"\\ud83d\\n\"",
           "\"\\ud83dA\"",
           "\"\\ude00\"",
           "\"\n\"",
           "\"\x01\"",
           "\"\xFF\"",
           "\"\xC0\x80\"",
           "\"\xE0\x80\x80\"",
           "\"\xED\xA0\x80\"",
           "\"\xF4\x90\x80\x80\"",
           "\"\xF5\x80\x80\x80\"",
           "\"\xC3\"",
           "\"\x80\"",
           "{} {}",
           "1 1",
           "'a'",
           "[1]x",
           "//",
           "\xEF\xBB\xBF",
       }) {
    EXPECT_EQ(accepts(text), Json::accept(std::string_view(text))) << text;
  }
}

// The eight-byte steps must find each special byte at each place.
TEST(JsonScanner, SpecialBytesAtEveryPlace) {
  for (size_t before = 0; before < 20; ++before) {
    for (size_t after = 0; after < 10; ++after) {
      const auto around = [before, after](std::string_view middle) {
        std::string text(before, 'a');
        text.append(middle).append(after, 'z');
        return text;
      };
      const auto quoted = [&around](std::string_view middle) { return fmt::format("\"{}\"", around(middle)); };
      EXPECT_EQ(scanned(quoted("\\n")), around("\n"));
      EXPECT_EQ(scanned(quoted("\xC3\xBC")), around("\xC3\xBC"));
      EXPECT_FALSE(accepts(quoted("\x1F")));
      EXPECT_FALSE(accepts(quoted("\x80")));
      EXPECT_FALSE(accepts("\"" + around("")));
      EXPECT_EQ(scanned(quoted("\x7F !")), around("\x7F !"));
    }
  }
}

TEST(JsonScanner, EscapesDecode) {
  EXPECT_EQ(scanned(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(scanned(R"("\u0041\u00fc\u20AC\ud83d\ude00")"), "A\xC3\xBC\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(scanned(R"("\u0000")"), std::string(1, '\0'));
}

TEST(JsonScanner, WalksObjectsAndArrays) {
  JsonScanner scan(R"({"a":[1,2.5],"b\n":"x","c":{"d":null}})", kSource);
  std::string seen;
  scan.object([&](std::string_view key) {
    seen += std::string(key) + '=';
    if (scan.peek() == JsonKind::kArray) {
      scan.array([&] { seen += std::string(scan.number()) + ';'; });
    } else {
      seen += std::string(scan.skip()) + ';';
    }
  });
  scan.end();
  EXPECT_EQ(seen, "a=1;2.5;b\n=\"x\";c={\"d\":null};");
}

TEST(JsonScanner, ErrorsSayWhereAndWhat) {
  const Error error = thrown_error([] { accepts("{}"), JsonScanner("[1,}", kSource).skip(); });
  EXPECT_EQ(error.message(), "not valid JSON");
  EXPECT_EQ(error.file(), kSource);
  EXPECT_EQ(value_of(error, "byte"), "3");
  EXPECT_EQ(value_of(error, "expected"), "a value");
}

TEST(JsonScanner, NestingIsBounded) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_TRUE(accepts(nested(kMaxJsonDepth)));
  EXPECT_FALSE(accepts(nested(kMaxJsonDepth + 1)));
  EXPECT_FALSE(accepts(std::string(1'000'000, '[')));
  // Depth counts what is open, not what was opened.
  std::string wide = "[";
  for (int i = 0; i < 100; ++i) wide += "[],";
  EXPECT_TRUE(accepts(wide + "[]]"));
}

TEST(WholeNumber, OnlyPlainDigitsThatFit) {
  EXPECT_EQ(whole_number("0"), 0u);
  EXPECT_EQ(whole_number("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"18446744073709551616", "-1", "-0", "+1", "1.0", "1e3", "", " 1", "1 ", "0x1"})
    EXPECT_FALSE(whole_number(text)) << text;
}

TEST(JsonString, EscapesOnlyWhatMustBe) {
  std::string out;
  append_json_string(&out, std::string_view("a\"\\/\b\f\n\r\t\x01\x1f\x7f\xC3\xBC\0", 15));
  EXPECT_EQ(out, "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\xC3\xBC\\u0000\"");
  EXPECT_EQ(scanned(out), std::string_view("a\"\\/\b\f\n\r\t\x01\x1f\x7f\xC3\xBC\0", 15));
}

}  // namespace
}  // namespace nibble
